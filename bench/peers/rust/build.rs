// SPDX-License-Identifier: MIT
// The versions that cargo chose, for the program to name.
use std::{env, fs, path::Path};

fn main() {
    let lock = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("Cargo.lock");
    let text = fs::read_to_string(&lock).unwrap_or_default();
    let mut versions = Vec::new();
    for wanted in ["rslock", "redis", "tokio"] {
        let head = format!("name = \"{wanted}\"\nversion = \"");
        if let Some(at) = text.find(&head) {
            let rest = &text[at + head.len()..];
            versions.push(format!("{wanted} {}", &rest[..rest.find('"').unwrap()]));
        }
    }
    println!("cargo:rustc-env=PEER_VERSIONS={}", versions.join(", "));
    println!("cargo:rerun-if-changed={}", lock.display());
}
