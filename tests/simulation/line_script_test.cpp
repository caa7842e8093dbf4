// SPDX-License-Identifier: MIT
// What the scripts make of those that wait for a lock on one node (line.lua), as the simulator's
// server and a real one run them.
#include <doctest/doctest.h>
#include <string>
#include <utility>

#include "simulation/script_talk.hpp"

using redlock::simulation::talk;

TEST_CASE("waiters stand in the order in which their calls began, whenever they say so") {
  talk(R"(
    waiting bb:1 50
    clock +20
    acquire x as cc:1 60 poll    -> [0 ~30000 1]
    acquire x as cc:2 70         -> [0 ~30000 1]
    acquire x as aa:1 80         -> [0 ~30000 0]
    acquire x as bb:1 70         -> [0 ~30000 1]
    line                         -> aa:1 bb:1 cc:2 cc:1
    place aa:1                   -> 80
  )");
}

TEST_CASE(
    "a waiter's place becomes an earlier one and never a later one, whatever the clock does") {
  talk(R"(
    waiting aa:1 50, bb:1 40
    clock +100000
    acquire x as aa:1 60         -> [0 ~30000 0]
    place aa:1                   -> 100050
    clock -100000
    acquire x as bb:1 51         -> [0 ~30000 0]
    line                         -> bb:1 aa:1
  )");
}

TEST_CASE("a waiter counts as alive for as long as its manner of waiting says, from each call") {
  talk(R"(
    waiting aa:1 50, bb:1 40 poll turn 60
    record aa:1                  -> 2500 w 20
    record bb:1                  -> 250 p 60
    clock +49
    acquire x as bb:1 89 poll turn 60 -> [0 ~30000 1]
    record bb:1                  -> 201 p 60
    clock +450
    acquire x as aa:1 549        -> [0 ~30000 0]
    record aa:1                  -> 2001 w 20
    clock +1
    PEXPIRE line 500             -> 1
    PEXPIRE waiters 500          -> 1
    acquire x as aa:1 550        -> [0 ~30000 0]
    record aa:1                  -> 2500 w 20
    PTTL line                    -> ~3000
    PTTL waiters                 -> ~3000
    acquire x as aa:1 550 turn 30 -> [0 ~30000 0]
    record aa:1                  -> 2500 w 30
    clock -1000
    acquire x as aa:1 0 turn 30  -> [0 ~30000 0]
    record aa:1                  -> 2500 w 30
  )");
}

TEST_CASE("the text about a waiter is kept as it was said first") {
  talk(R"(
    waiting aa:1 0 text host-1, aa:1 0 text host-2
    HGET waiters @aa:1           -> 'host-1'
    leave aa:1                   -> 0
    line                         -> none
  )");
}

TEST_CASE("a call that does not wait stands in no line, and takes no free lock before waiters") {
  talk(R"(
    acquire a behind             -> [1 1]
    acquire b behind             -> [0 ~30000]
    line                         -> none
    acquire x as aa:1 0 poll turn 60 -> [0 ~30000 0]
    DEL lock                     -> 1
    acquire b behind             -> [0 60]
    line                         -> aa:1(60)
    clock +10
    acquire b behind             -> [0 50]
  )");
}

TEST_CASE("a release gives the first waiter its turn, and tells it and the second") {
  talk(R"(
    waiting bb:70 40, aa:1 50 turn 35, aa:2 30
    release holder               -> [1] [aa 1 0][bb 70 35]
    line                         -> aa:1(35) bb:70 aa:2
  )");
}

TEST_CASE("a release that is to tell the first waiter only leaves the second to other nodes") {
  talk(R"(
    waiting bb:70 40, aa:1 50
    release holder first as aa:2 30 text why -> [1] [aa 1 0]
    line                         -> aa:1(20) bb:70 aa:2
    HGET waiters @aa:2           -> 'why'
    acquire a as aa:1 50         -> [1 2]
    release a first              -> [1] [bb 70 0]
    leave bb:70                  -> 0 [aa 2 0]
  )");
}

TEST_CASE("during a turn only its waiter is granted the lock; others are stood in their places") {
  talk(R"(
    waiting aa:1 50 turn 30
    release holder               -> [1] [aa 1 0]
    clock +10
    acquire b as bb:1 70         -> [0 20 0]
    acquire c behind             -> [0 20]
    line                         -> bb:1 aa:1(20)
    acquire a as aa:1 60         -> [1 2]
    line                         -> bb:1
    record aa:1                  -> nil
  )");
}

TEST_CASE("the last waiter that is granted the lock leaves no line behind") {
  talk(R"(
    waiting aa:1 0 text why
    release holder               -> [1] [aa 1 0]
    acquire a as aa:1 0          -> [1 2]
    line                         -> none
    release a                    -> [1]
    acquire a as aa:2 0          -> [1 3]
    line                         -> none
  )");
}

TEST_CASE("from a grant on the next call of the client has the place") {
  talk(R"(
    waiting aa:1 50, bb:1 40, bb:2 20
    release holder               -> [1] [aa 1 0][bb 1 20]
    clock +1
    acquire a as aa:1 51 turn 25 next 30 -> [1 2 1]
    line                         -> bb:1 aa:1 bb:2
    place aa:1                   -> 30
    record aa:1                  -> 2500 w 25
  )");
  // Where nobody else waits, and the client has not stood there before.
  talk(R"(
    acquire a as aa:1 50 next 0 text why -> [1 1 0]
    line                         -> aa:1
    HGET waiters @aa:1           -> 'why'
  )");
}

TEST_CASE("a lock that has expired is kept for the first in line, whichever asks first") {
  talk(R"(
    waiting aa:1 50, bb:1 40
    DEL lock                     -> 1
    acquire b as bb:1 40         -> [0 20 1] [aa 1 0]
    acquire a as aa:1 50         -> [1 2]
    line                         -> bb:1
    DEL lock                     -> 1
    acquire b as bb:1 40         -> [1 3]
    line                         -> none
  )");
}

TEST_CASE("a waiter that does not use its turn is not waited for again, but may come back") {
  talk(R"(
    waiting aa:1 50, bb:1 40, bb:2 30
    release holder               -> [1] [aa 1 0][bb 1 20]
    clock +20
    acquire c as bb:2 50         -> [0 20 1] [bb 1 0]
    line                         -> bb:1(20) bb:2
    acquire a as aa:1 70         -> [0 20 0]
    clock +20
    acquire a as aa:1 90         -> [1 2]
    line                         -> bb:1 bb:2
  )");
}

TEST_CASE("a turn that is over may still be used by its waiter") {
  talk(R"(
    waiting aa:1 50, aa:2 40
    release holder               -> [1] [aa 1 0][aa 2 20]
    clock +100
    acquire a as aa:1 150        -> [1 2]
    line                         -> aa:2
  )");
}

TEST_CASE("a turn that is over harms neither its waiter behind an earlier one, nor that one's") {
  talk(R"(
    waiting aa:1 50
    release holder               -> [1] [aa 1 0]
    acquire b as aa:2 60         -> [0 20 0]
    clock +20
    acquire c behind             -> [0 20] [aa 2 0][aa 1 20]
    line                         -> aa:2(20) aa:1
  )");
}

TEST_CASE("a client that no message reaches is out of the line at once") {
  talk(R"(
    waiting cc:1 9, cc:2 8, bb:1 7, cc:3 6, bb:2 5, cc:4 4
    release holder               -> [1] [bb 1 0][bb 2 20]
    line                         -> bb:1(20) bb:2 cc:4
  )");
}

TEST_CASE("a waiter that has not asked again within its time is out of the line") {
  talk(R"(
    waiting aa:1 50
    clock +2500
    acquire x as aa:2 0          -> [0 ~30000 1]
    release holder               -> [1] [aa 2 0]
    line                         -> aa:2(20)
    HSET waiters aa:2 '1 w 20' -> 0
    acquire a                    -> [1 2]
    release a                    -> [1]
    line                         -> none
  )");
  for (const std::string record : {"no record", "1900000000000 w", "1900000000000 q 20", ""}) {
    talk(R"(
      waiting aa:1 50, aa:2 40
      HSET waiters aa:1 ')" +
         record + R"(' -> 0
      release holder             -> [1] [aa 2 0]
      line                       -> aa:2(20)
    )");
  }
}

TEST_CASE("one call passes over 64 dead waiters at most, and the next one goes on with them") {
  std::string seventy_one = "waiting ";
  for (int i = 0; i < 70; ++i) {
    seventy_one += "cc:" + std::to_string(i) + " " + std::to_string(200 - i) + ", ";
  }
  seventy_one += "aa:1 50";
  talk(seventy_one + R"(
    release holder               -> [1]
    line                         -> cc:64 cc:65 cc:66 cc:67 cc:68 cc:69 aa:1
    acquire x as dd:1 0          -> [0 20 1] [aa 1 0]
    line                         -> aa:1(20) dd:1
  )");
  // Without an end in sight the lock is kept, so that it goes to none before its turn.
  talk(seventy_one + R"(
    DEL lock                     -> 1
    acquire x as dd:1 0          -> [0 1 7]
  )");
}

TEST_CASE("a turn lasts as long as its waiter needs, and half a second at most") {
  for (const auto& [asked, given] :
       {std::pair<std::string, std::string>{"1", "1"}, {"137", "137"}, {"501", "500"}}) {
    talk("waiting aa:1 50 turn " + asked + ", aa:2 40\n release holder -> [1] [aa 1 0][aa 2 " +
         given + "]\n line -> aa:1(" + given + ") aa:2");
  }
}

TEST_CASE("a waiter that polls is told nothing") {
  talk(R"(
    waiting aa:1 50 poll turn 60, aa:2 40
    release holder               -> [1] [aa 2 60]
    line                         -> aa:1(60) aa:2
    acquire a as aa:1 50 poll turn 60 -> [1 2]
  )");
}

TEST_CASE("a turn that ends later than any can, as the clock was set back, is over") {
  talk(R"(
    waiting aa:1 5000, aa:2 4000
    release holder               -> [1] [aa 1 0][aa 2 20]
    clock -1000
    acquire x as bb:1 0          -> [0 20 1] [aa 2 0]
    line                         -> aa:2(20) bb:1
  )");
}

TEST_CASE("a release of nobody's lock gives no turn, and a waiter that leaves takes nobody's") {
  talk(R"(
    waiting aa:1 50, aa:2 40
    release x                    -> [0]
    leave aa:1                   -> 0
    line                         -> aa:2
    DEL lock                     -> 1
    release x                    -> [0]
    leave aa:9                   -> 0
    line                         -> aa:2
    leave aa:2                   -> 0
    line                         -> none
    leave aa:2                   -> 0
  )");
}

TEST_CASE("a waiter that leaves while the turn is its own passes it on, unless the lock is taken") {
  talk(R"(
    waiting aa:1 50, aa:2 40
    release holder               -> [1] [aa 1 0][aa 2 20]
    leave aa:1                   -> 0 [aa 2 0]
    line                         -> aa:2(20)
    HSET lock somebody 1         -> 1
    acquire x as aa:3 0          -> [0 -1 1]
    leave aa:2                   -> 0
    line                         -> aa:3
  )");
}

TEST_CASE("a waiter that leaves its place to another call of its client keeps the turn if first") {
  talk(R"(
    waiting aa:1 50, aa:2 30
    release holder               -> [1] [aa 1 0][aa 2 20]
    leave to aa:1 40 text why    -> 0 [aa 1 0][aa 2 20]
    line                         -> aa:1(20) aa:2
    place aa:1                   -> 40
    HGET waiters @aa:1           -> 'why'
    leave to aa:1 20 text why    -> 0 [aa 2 0][aa 1 20]
    line                         -> aa:2(20) aa:1
  )");
}

TEST_CASE("a release whose client goes on waiting stands it in its place before any is told") {
  talk(R"(
    acquire a as aa:1 50         -> [1 1]
    acquire x as bb:1 40         -> [0 ~30000 0]
    release a as aa:1 50         -> [1] [aa 1 0][bb 1 20]
    line                         -> aa:1(20) bb:1
    record aa:1                  -> 2500 w 20
    acquire a as aa:1 50         -> [1 2]
    release a as aa:1 30         -> [1] [bb 1 0][aa 1 20]
    line                         -> bb:1(20) aa:1
    acquire b as bb:1 40 next 35 -> [1 3 0]
    release b to bb:1 10         -> [1] [aa 1 0][bb 1 20]
    line                         -> aa:1(20) bb:1
  )");
  // Also where nobody else waits, and where it has nothing to release.
  talk(R"(
    acquire a                    -> [1 1]
    release x as aa:1 50         -> [0]
    release x as aa:2 40         -> [0]
    line                         -> aa:1 aa:2
  )");
}

TEST_CASE("any grant ends a turn, and takes no place from the waiter that had it") {
  talk(R"(
    waiting aa:1 50
    release holder               -> [1] [aa 1 0]
    acquire b                    -> [1 2]
    line                         -> aa:1
    release b                    -> [1] [aa 1 0]
    acquire a as aa:1 50         -> [1 3]
  )");
}

TEST_CASE("one release of many locks gives the turn of each, also in a line that they share") {
  talk(R"(
    HSET l1 o 1                  -> 1
    HSET l2 o 1                  -> 1
    HSET l3 o 1                  -> 1
    ZADD n1 5 aa:1            -> 1
    HSET w1 aa:1 '1900000000000 w 20' -> 1
    SET n2 text               -> 'OK'
    ZADD n3 5 aa:3 6 aa:4     -> 2
    HSET w3 aa:3 '1 w 20' aa:4 '1900000000000 w 20' -> 2
    ZADD n4 5 aa:5            -> 1
    HSET w4 aa:5 '1900000000000 w 20' -> 1
    script release l1 n1 w1 l2 n2 w2 l3 n3 w3 l4 n4 w4 | o 2 o 2 o 2 o 2
      -> [1 1 1 0] [aa 1 0][aa 4 0]
    EXISTS l1 l2 l3              -> 0
    GET n2                    -> 'text'
    HSET l5 o 1                  -> 1
    HSET l6 o 1                  -> 1
    script release l5 n1 w1 | o 2 -> [1] [aa 1 0]
    script release l6 n1 w1 | o 2 -> [1] [aa 1 0]
    HMGET w1 l5 l6         -> ['aa:1 1800000000020' 'aa:1 1800000000020']
  )");
}

TEST_CASE("a lock that is taken by force goes to the first in line") {
  talk(R"(
    waiting aa:1 50
    force another                -> [0]
    force holder                 -> [1] [aa 1 0]
    acquire holder as aa:1 50    -> [3]
    acquire a as aa:1 50         -> [1 3]
  )");
}

TEST_CASE("a grant that fails keeps its waiter's place") {
  talk(R"(
    waiting aa:1 50
    release holder               -> [1] [aa 1 0]
    SET fence 9007199254740991   -> 'OK'
    acquire a as aa:1 50         -> error has reached 2^53
    line                         -> aa:1(20)
  )");
}

TEST_CASE("a damaged line is no line: locks are taken and given back all the same") {
  for (const std::string damaged : {"line", "waiters"}) {
    talk("SET " + damaged + " text -> 'OK'" + R"(
      acquire a as aa:1 50 next 30 -> [1 1]
      acquire b as bb:1 40       -> [0 ~30000]
      release a as aa:1 50       -> [1]
      acquire b behind           -> [1 2]
      leave bb:1                 -> 0
      release b                  -> [1]
      GET )" +
         damaged + " -> 'text'");
  }
}

TEST_CASE("a full node stands nobody in line, grants nothing, and still gives turns") {
  talk(R"(
    waiting aa:1 50
    full
    acquire b as aa:2 40         -> [0 ~30000]
    line                         -> aa:1
    release holder as aa:3 30    -> [1] [aa 1 0][aa 3 20]
    acquire a as aa:1 50         -> error OOM
    lock                         -> free, fence 1
    line                         -> aa:1(20) aa:3
    leave aa:1                   -> 0 [aa 3 0]
    line                         -> aa:3(20)
    leave aa:3                   -> 0
    line                         -> none
  )");
}

TEST_CASE("a lock is passed on to the first waiter without a message, and without a turn") {
  talk(R"(
    waiting aa:1 50, bb:1 40
    pass holder heir as aa:1 50 next 30 -> [1 [1 2 1]]
    lock                         -> heir 1 for ~30000, fence 2
    line                         -> bb:1 aa:1
    leave bb:1                   -> 0
    pass heir last as aa:1 50    -> [1 [1 3]]
    line                         -> none
  )");
}

TEST_CASE("a lock is not passed on before the first waiter, nor by an owner that has it not") {
  talk(R"(
    waiting aa:1 50, bb:1 40
    pass other heir as aa:1 50   -> [0 [0 ~30000 0]]
    lock                         -> holder 1 for ~30000, fence 1
    pass holder heir as bb:1 40  -> [1 [0 20 1]] [aa 1 0][bb 1 20]
    lock                         -> free, fence 1
    line                         -> aa:1(20) bb:1
    leave aa:1                   -> 0 [bb 1 0]
    pass holder heir behind      -> [0 [0 20]]
    line                         -> bb:1(20)
    pass holder heir             -> [0 [1 2]]
    pass heir last               -> [1 [1 3]] [bb 1 0]
  )");
}

TEST_CASE("of a release and an acquire in one call one may fail alone") {
  const std::string two_wait = "waiting aa:1 50, aa:2 40";
  SUBCASE("at the fence") {
    talk(two_wait + R"(
      DEL fence                  -> 1
      HSET fence x 1             -> 1
      pass holder heir as aa:1 50 -> [1 error WRONGTYPE] [aa 1 0][aa 2 20]
      EXISTS lock                -> 0
      line                       -> aa:1(20) aa:2
    )");
  }
  SUBCASE("as its owner was forced out") {
    talk(two_wait + R"(
      force heir                 -> [0]
      pass holder heir as aa:1 50 -> [1 [3]] [aa 1 0][aa 2 20]
      lock                       -> free, fence 1
      line                       -> aa:1(20) aa:2
    )");
  }
  SUBCASE("at maxmemory, unless as much was freed before") {
    talk(two_wait + R"(
      full
      pass holder heir as aa:1 50 -> [1 [1 2]]
      DEL lock                   -> 1
      pass heir last             -> [0 error OOM]
    )");
  }
}
