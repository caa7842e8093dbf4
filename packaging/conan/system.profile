# The libraries of Debian 12 (libhiredis-dev, libuv1-dev, libssl-dev, libexpected-dev) in place of
# those of Conan's registry:  conan create packaging/conan --profile packaging/conan/system.profile
[settings]
os=Linux
arch={{ detect_api.detect_arch() }}
compiler=gcc
compiler.version=12
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Release

[platform_requires]
tl-expected/1.0.0
hiredis/0.14.1
libuv/1.44.2
openssl/3.0.0

[conf]
tools.cmake.cmake_layout:test_folder=$TMP
tools.gnu:pkg_config=/usr/bin/pkg-config
