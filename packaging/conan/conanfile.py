# SPDX-License-Identifier: MIT
# A recipe for Conan 2, of the tree that it lies in:  conan create packaging/conan
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps


class RedlockConan(ConanFile):
    name = "redlock"
    description = "One mutex for many machines, granted by a majority of independent Redis nodes"
    license = "MIT"
    topics = ("redis", "redlock", "distributed-lock", "mutex", "fencing")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "tls": [True, False]}
    default_options = {"shared": False, "fPIC": True, "tls": True}
    implements = ["auto_shared_fpic"]

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"^  VERSION ([0-9.]+)$", text, re.MULTILINE).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md", "cmake/*", "include/*",
                        "src/*", "packaging/debian/*"):
            copy(self, pattern, src=self._root(), dst=self.export_sources_folder)

    def requirements(self):
        # Public headers include that of tl::expected, and nothing of the others.
        self.requires("tl-expected/[>=1.0 <2]", transitive_headers=True)
        self.requires("hiredis/[>=0.14 <2]")
        self.requires("libuv/[>=1.44 <2]")
        if self.options.tls:
            self.requires("openssl/[>=3 <4]")

    def build_requirements(self):
        if not self.conf.get("tools.gnu:pkg_config", check_type=str):
            self.tool_requires("pkgconf/[>=2 <3]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("redlock runs on Linux only")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["REDLOCK_TLS"] = bool(self.options.tls)
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder,
             dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes these anew for whoever uses the package.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "redlock")
        self.cpp_info.set_property("cmake_target_name", "redlock::redlock")
        self.cpp_info.set_property("pkg_config_name", "redlock")
        self.cpp_info.libs = ["redlock"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:
            self.cpp_info.defines = ["REDLOCK_STATIC_DEFINE"]
            # A profile may say that these are the system's ([platform_requires]).
            found = {dependency.ref.name for dependency in self.dependencies.host.values()}
            for package, libraries in (("hiredis", ["hiredis"]), ("libuv", ["uv"]),
                                       ("openssl", ["ssl", "crypto"])):
                if package not in found and (package != "openssl" or self.options.tls):
                    self.cpp_info.system_libs.extend(libraries)
