// SPDX-License-Identifier: MIT
// The library's scripts told as conversations about one lock. The simulator's server and a real one
// are to have them alike, each with the scripts for Redis 7 and those for 6.2. A line is a step:
//   acquire b as bb:1 40     -> [0 ~30000 0]
//   release holder           -> [1] [bb 1 0]
// Behind a reply stand the messages of that step, to the clients aa and bb: [CLIENT TEXT]. Of an
// error a few words of its text are told. ~30000 is a lease of which up to a third is over. Every
// reply must be one that the library reads; as which may stand at the end: -> [3] = forced out.
// Steps:
//   SCRIPT OWNER [OPTION...]         a script that has a command, by its name, as the library calls
//                                    it: acquire OWNER ORDER, release OWNER [first] [PLACE]
//                                    (`first`: another node tells the second waiter)
//   leave WAITER                     leave PLACE
//   pass OWNER NEXT ORDER            a release and an acquire in one call
//   script NAME KEYS | ARGUMENTS     any script, as its file describes it
//   waiting WAITER MS, WAITER MS     `holder` has the lock, and these wait for it
//   lock      line                   who has it; who waits, and for how many ms it has its turn
//   place WAITER                     for how many ms it has waited
//   record WAITER                    what is written of it: lives for how many ms, how, turn
//   clock +MS                        the node's clock, which stands still, moves
//   full                             the node is at maxmemory from now on
//   replica                          the node refuses every write from now on
//   each VALUE VALUE                 first of all: the rest is held with each of them as $
//   COMMAND...                       lock, fence, line, waiters, marker and notes are keys
// ORDER is nothing (out of turn), `behind` (behind those that wait), or a PLACE: `as WAITER MS`, or
// `to WAITER MS` for another call of that client. Options with a value are lease, floor, count,
// token, for (how long an owner is kept out), in (=SET:EPOCH, which the marker is to name), turn,
// text, and next (for how long the client's next call has waited); `poll`: its client is not woken.
// A user of the real server may touch no key but those that a script's call names.
#pragma once

#include <string_view>

#include "cluster/fleet.hpp"

namespace redlock::simulation {

/// The one real server of this program.
cluster::Fleet& fleet();

/// The conversation, from its beginning, with each server and each form of the scripts.
void talk(std::string_view conversation);

}  // namespace redlock::simulation
