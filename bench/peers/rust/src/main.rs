// SPDX-License-Identifier: MIT
// rslock as a peer: peer WAY LEASE_MS HOST:PORT... As its README shows: one LockManager, whose
// acquire() tries until it has the lock, with pauses of at most 200 ms.
use rslock::{LockGuard, LockManager};
use serde_json::{json, Value};
use std::fs::{remove_file, OpenOptions};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::sleep;

#[derive(Default)]
struct Calls {
    acquired: Vec<u64>,
    released: Vec<u64>,
    in_time: u64,
    failed: u64,
    overlaps: u64,
    error: String,
}

#[derive(Clone)]
struct Peer {
    locks: LockManager,
    lease: Duration,
}

fn micros(start: Instant) -> u64 {
    start.elapsed().as_micros() as u64
}

/// Whether nobody else is where only one may be.
fn enter(guard: &str) -> bool {
    let file = OpenOptions::new().write(true).create_new(true).open(guard);
    file.is_ok()
}

impl Peer {
    async fn acquire(&self, name: &str) -> Result<LockGuard, String> {
        let guard = self.locks.acquire(name, self.lease).await;
        guard.map_err(|error| error.to_string())
    }

    /// One caller's calls until the end. Two that hold one lock meet at the guard's file.
    async fn call(self, end: Instant, section: Duration, name: String, guard: String) -> Calls {
        let mut calls = Calls::default();
        let mut start = Instant::now();
        while Instant::now() < end {
            let lock = match self.acquire(&name).await {
                Ok(lock) => lock,
                Err(error) => {
                    calls.failed += 1;
                    calls.error = error;
                    continue;
                }
            };
            calls.acquired.push(micros(start));
            calls.in_time += u64::from(Instant::now() < end);
            let alone = guard == "-" || enter(&guard);
            calls.overlaps += u64::from(!alone);
            if !section.is_zero() {
                sleep(section).await;
            }
            if guard != "-" && alone {
                let _ = remove_file(&guard);
            }
            start = Instant::now();
            lock.release().await;
            calls.released.push(micros(start));
            start = Instant::now();
        }
        calls
    }

    /// run MS CALLERS SECTION_MS NAME GUARD
    async fn run(&self, words: &[&str]) -> Value {
        let ms = |text: &str| Duration::from_millis(text.parse().unwrap());
        let end = Instant::now() + ms(words[1]);
        let callers: u64 = words[2].parse().unwrap();
        let mut tasks = Vec::new();
        for i in 0..callers {
            let mut name = words[4].to_string();
            if name.ends_with('-') {
                name += &i.to_string();
            }
            let call = self.clone().call(end, ms(words[3]), name, words[5].to_string());
            tasks.push(tokio::spawn(call));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.unwrap());
        }
        let errors = all.iter().map(|one| &one.error);
        json!({
            "acquire_us": all.iter().flat_map(|one| &one.acquired).collect::<Vec<_>>(),
            "release_us": all.iter().flat_map(|one| &one.released).collect::<Vec<_>>(),
            "grants": all.iter().map(|one| one.in_time).collect::<Vec<_>>(),
            "failed": all.iter().map(|one| one.failed).sum::<u64>(),
            "overlaps": all.iter().map(|one| one.overlaps).sum::<u64>(),
            "error": errors.filter(|error| !error.is_empty()).next(),
        })
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let uris = arguments[3..].iter().map(|node| format!("redis://{node}/")).collect();
    let lease = Duration::from_millis(arguments[2].parse().unwrap());
    let peer = Peer { locks: LockManager::new::<String>(uris), lease };
    println!("{}", json!({"version": env!("PEER_VERSIONS")}));
    let mut held: Option<LockGuard> = None;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Vec<&str> = line.split(' ').collect();
        let start = Instant::now();
        let answer = match words[0] {
            "run" => peer.run(&words).await,
            "hold" => match peer.acquire(words[1]).await {
                Ok(lock) => {
                    held = Some(lock);
                    json!({"held": true, "us": micros(start)})
                }
                Err(error) => json!({"held": false, "us": micros(start), "error": error}),
            },
            _ => {
                if let Some(lock) = held.take() {
                    lock.release().await;
                }
                json!({"released": true, "us": micros(start)})
            }
        };
        println!("{answer}");
    }
}
