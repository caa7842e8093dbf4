// SPDX-License-Identifier: MIT
// Every branch of the scripts that take a lock, keep it, give it back and release it by force, as
// the simulator's server and a real one run them.
#include <doctest/doctest.h>
#include <string>

#include "simulation/script_talk.hpp"

using redlock::simulation::talk;

TEST_CASE("acquire grants a free lock, and counts the fence") {
  talk(R"(
    acquire a                    -> [1 1]
    lock                         -> a 1 for ~30000, fence 1
    release a                    -> [1]
    acquire b                    -> [1 2]
    release b                    -> [1]
    acquire c text host-1        -> [1 3]
    lock                         -> c 1 @ host-1 for ~30000, fence 3
  )");
}

TEST_CASE(
    "acquire for the owner who has the lock is no grant: it makes it last, and counts nothing") {
  talk(R"(
    acquire a                    -> [1 1]
    SET fence 7                  -> 'OK'
    acquire a floor 100 lease 90000 -> [4]
    lock                         -> a 1 for ~90000, fence 7
    acquire a floor 100 lease 1000  -> [4]
    lock                         -> a 1 for ~90000, fence 7
    DEL lock                     -> 1
    HSET lock a 1                -> 1
    acquire a                    -> [4]
    lock                         -> a 1 for ~30000, fence 7
  )");
}

TEST_CASE("acquire is refused while another owner has the lock, with the time that is left") {
  talk(R"(
    acquire a                    -> [1 1]
    acquire b                    -> [0 ~30000]
    lock                         -> a 1 for ~30000, fence 1
    DEL lock                     -> 1
    HSET lock a 1                -> 1
    acquire b                    -> [0 -1]
  )");
}

TEST_CASE("keys of another type are left alone: acquire is refused, or fails before it writes") {
  talk(R"(
    SET lock text                -> 'OK'
    acquire a                    -> [2]
    release a                    -> [0]
    hold a                       -> [[-2]]
    force b                      -> [0]
    GET lock                     -> 'text'
    EXISTS fence                 -> 0
    DEL lock                     -> 1
    HSET fence x 1               -> 1
    acquire a                    -> error WRONGTYPE
    DEL fence                    -> 1
    SET fence abc                -> 'OK'
    acquire a                    -> error not an integer
    acquire a lease 99999999999999999999 -> error ERR
    EXISTS lock                  -> 0
  )");
}

TEST_CASE("the floor lifts a token, exactly, and never lowers one") {
  talk(R"(
    acquire a floor 1795227228964050 -> [1 1795227228964050]
    GET fence                    -> '1795227228964050'
    release a                    -> [1]
    acquire b floor 5            -> [1 1795227228964051]
    GET fence                    -> '1795227228964051'
    release b                    -> [1]
    acquire c floor 4503599627370496 -> [1 4503599627370496]
    GET fence                    -> '4503599627370496'
    release c                    -> [1]
    acquire d                    -> [1 4503599627370497]
  )");
}

TEST_CASE("floors end at 2^52, with nothing written") {
  talk(R"(
    acquire a floor 4503599627370497 -> error the floor is beyond 2^52
    acquire a floor 9007199254740991 -> error the floor is beyond 2^52
    acquire a floor 9007199254740992 -> error the floor is beyond 2^52
    acquire a floor nan          -> error the floor is beyond 2^52
    acquire a floor x            -> error ERR
    EXISTS lock fence            -> 0
  )");
}

TEST_CASE("tokens end at 2^53: a fence that reached it, or its type's end, grants nothing") {
  const std::pair<const char*, const char*> fences[] = {{"9007199254740991", "has reached 2^53"},
                                                        {"9007199254740992", "has reached 2^53"},
                                                        {"9007199254740993", "has reached 2^53"},
                                                        {"9223372036854775806", "has reached 2^53"},
                                                        {"9223372036854775807", "would overflow"}};
  for (const auto& [fence, error] : fences) {
    const std::string number = fence;
    talk("SET fence " + number + R"( -> 'OK'
      acquire a                  -> error )" +
         error + R"(
      lock                       -> free, fence )" +
         number);
  }
}

TEST_CASE(
    "hold confirms, changes only what differs, and lengthens the lease but never shortens it") {
  talk(R"(
    acquire a floor 10           -> [1 10]
    hold a token 10              -> [[1 10]]
    hold a token 10 count 3      -> [[1 10]]
    lock                         -> a 3 for ~30000, fence 10
    hold a token 10 count 2      -> [[1 10]]
    lock                         -> a 2 for ~30000, fence 10
    hold a lease 90000           -> [[1 10]]
    hold a lease 1000 count 2    -> [[1 10]]
    lock                         -> a 2 for ~90000, fence 10
    DEL lock                     -> 1
    HSET lock a 1                -> 1
    hold a lease 9000            -> [[1 10]]
    lock                         -> a 1 for ~9000, fence 10
  )");
}

TEST_CASE("hold raises the fence to the token, exactly, and never lowers it") {
  talk(R"(
    acquire a                    -> [1 1]
    hold a token 1795227228964050 -> [[1 1795227228964050]]
    GET fence                    -> '1795227228964050'
    hold a token 5               -> [[1 1795227228964050]]
    GET fence                    -> '1795227228964050'
    hold a token 4503599627370496 -> [[1 4503599627370496]]
    GET fence                    -> '4503599627370496'
    hold a token 0               -> [[1 4503599627370496]]
    DEL fence                    -> 1
    hold a token 1795227228964050 -> [[1 1795227228964050]]
    GET fence                    -> '1795227228964050'
    hold a token 9007199254740991 -> [[1 9007199254740991]]
    hold a token 9007199254740992 -> [[1 9007199254740991]]
    hold a token 9223372036854775807 -> [[1 9007199254740991]]
    GET fence                    -> '9007199254740991'
  )");
}

TEST_CASE("hold tells free, taken and foreign apart, and changes nothing there") {
  talk(R"(
    hold a token 50              -> [[0]]
    lock                         -> free, fence nil
    acquire b                    -> [1 1]
    hold a token 50 lease 90000  -> [[-1]]
    lock                         -> b 1 for ~30000, fence 1
    DEL lock                     -> 1
    SET lock a                   -> 'OK'
    hold a                       -> [[-2]]
  )");
}

TEST_CASE(
    "with a fence of no use hold still holds, and says so with fence 0; force takes the lock") {
  for (const std::string fence :
       {"'abc'", "'-3'", "'1e3'", "''", "'9007199254740992'", "'99999999999999999999'"}) {
    talk("SET fence " + fence + R"( -> 'OK'
      HSET lock a 1              -> 1
      hold a count 2 token 50 lease 90000 -> [[1 0]]
      HGETALL lock               -> ['a' '2']
      PTTL lock                  -> ~90000
      GET fence                  -> )" +
         fence);
  }
  talk(R"(
    HSET lock a 1                -> 1
    HSET fence x 1               -> 1
    hold a count 2 token 50      -> [[1 0]]
    HGETALL lock                 -> ['a' '2']
    force a                      -> [1]
    HGETALL fence                -> ['x' '1']
  )");
}

TEST_CASE("one call holds several locks, and what is wrong with one harms no other") {
  talk(R"(
    HSET l1 a 1                  -> 1
    HSET l2 z 1                  -> 1
    HSET l3 c 1                  -> 1
    script hold l1 f1 o1 l2 f2 o2 l3 f3 o3 | a 1 10 9000 a 1 10 9000 c 4 1795227228964050 9000
      -> [[1 10] [-1] [1 1795227228964050]]
    GET f1                       -> '10'
    PTTL l1                      -> ~9000
    EXISTS f2                    -> 0
    HGET l3 c                    -> '4'
    GET f3                       -> '1795227228964050'
    SET l2 foreign               -> 'OK'
    HSET f4 x 1                  -> 1
    script hold l0 f0 o0 l2 f2 o2 l3 f4 o3 l1 f1 o1 | a 1 10 9000 a 1 10 9000 c 2 30 9000 a 1 7 9000
      -> [[0] [-2] [1 0] [1 10]]
    HGET l3 c                    -> '2'
    script hold l1 f1 o1 l3 f3 o3 | a 1 10 no-lease c 3 10 9000
      -> [error ERR [1 1795227228964050]]
    HGET l3 c                    -> '3'
    SET o2 x PX 60000            -> 'OK'
    HSET o3 of another           -> 1
    DEL l2                       -> 1
    HSET l2 z 1                  -> 1
    script hold l1 f1 o1 l2 f2 o2 l0 f0 o3 l2 f2 o1 | a 1 7 9000 a 1 7 9000 a 1 7 9000 a 1 7 9000
      -> [[1 10] [-3] [-3] [-1]]
  )");
}

TEST_CASE("release deletes the owner's lock and nobody else's") {
  talk(R"(
    release a                    -> [0]
    acquire a                    -> [1 1]
    release b                    -> [0]
    EXISTS lock                  -> 1
    release a                    -> [1]
    lock                         -> free, fence 1
  )");
}

TEST_CASE("a forced owner loses the lock, and is turned away for the time given and no longer") {
  talk(R"(
    acquire a                    -> [1 1]
    force a                      -> [1]
    GET fence                    -> '2'
    acquire a                    -> [3]
    hold a                       -> [[-3]]
    PTTL forced:a                -> ~40000
    force a for 10               -> [0]
    PTTL forced:a                -> ~40000
    force a for 90000            -> [0]
    PTTL forced:a                -> ~90000
    acquire c                    -> [1 3]
    hold a                       -> [[-3]]
  )");
}

TEST_CASE("force takes nothing from another owner, and each owner is kept out for its own time") {
  talk(R"(
    acquire b                    -> [1 1]
    force a for 60000            -> [0]
    GET fence                    -> '1'
    hold b                       -> [[1 1]]
    force b for 90000            -> [1]
    PTTL forced:a                -> ~60000
    acquire a                    -> [3]
    acquire b                    -> [3]
    DEL forced:a                 -> 1
    acquire b                    -> [3]
    acquire a                    -> [1 3]
  )");
}

TEST_CASE("a fence of no use does not keep a lock from being forced") {
  for (const std::string fence : {"abc", "9007199254740991", "9007199254740992"}) {
    talk("acquire a -> [1 1]\n SET fence " + fence + R"( -> 'OK'
      force a                    -> [1]
      lock                       -> free, fence )" +
         fence + R"(
      acquire a                  -> [3]
    )");
  }
}

TEST_CASE("a key of another type keeps its owner out as well, and is replaced by a longer time") {
  talk(R"(
    HSET forced:a some body      -> 1
    acquire a                    -> [3]
    force a                      -> [0]
    GET forced:a                 -> ''
    PTTL forced:a                -> ~40000
  )");
}

TEST_CASE(
    "a full node grants nothing new, but holds, releases, forces, and says who has the lock") {
  talk(R"(
    acquire a                    -> [1 1]
    full
    acquire b                    -> [0 ~30000]
    acquire a lease 60000        -> [4]
    lock                         -> a 1 for ~60000, fence 1
    hold a lease 90000           -> [[1 1]]
    lock                         -> a 1 for ~90000, fence 1
    hold a count 2 lease 200000  -> [[1 1]]
    hold a count 3 lease 1000    -> [[1 1]]
    lock                         -> a 3 for ~200000, fence 1
    hold a count 3 token 1795227228964050 lease 1000 -> [[1 1795227228964050]]
    lock                         -> a 3 for ~200000, fence 1795227228964050
    release a                    -> [1]
    acquire a                    -> error OOM
    lock                         -> free, fence 1795227228964050
    force b                      -> [0]
  )");
  talk(R"(
    acquire a                    -> [1 1]
    full
    force a                      -> [1]
    EXISTS forced:a              -> 1
    hold a                       -> [[-3]]
  )");
}

TEST_CASE("a node is pending until it gets a marker, and its fence is mended as it was found") {
  talk(R"(
    script pending marker notes | me 60000  -> 'me'
    script pending marker notes | you 60000 -> 'me'
    acquire a in -               -> error HASMARKER
    script adopt marker notes | id redlock-2 3 60000 mine '' me -> 'written'
    EXISTS notes                 -> 0
    script pending marker notes | me 60000
      -> ['id' 'id' 'layout' 'redlock-2' 'nodes' '3' 'max_lease_ms' '60000' 'set' 'mine']
    acquire a in =mine           -> [1 1]
    acquire a in -               -> error HASMARKER
    acquire a in =other          -> error OTHERSET
    DEL marker                   -> 1
    acquire a in =mine           -> error NOMARKER
    SET fence text               -> 'OK'
    script mend fence | 11 12 9000000000000000 -> 0
    script mend fence | '' 12 0  -> -1
    script mend fence | '' 12 9000000000000000 -> 1
    GET fence                    -> '12'
    script mend fence | 11 13 9000000000000000 -> 0
    script mend fence | 12 13 9000000000000000 -> 1
  )");
}
