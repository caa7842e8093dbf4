// SPDX-License-Identifier: MIT
// node-redlock as a peer: node peer.mjs WAY LEASE_MS HOST:PORT... As its README shows: a client of
// ioredis for each node; ten tries more, 200 ms apart with a jitter of 100 ms.
import { closeSync, openSync, readFileSync, unlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import Client from "ioredis";

// Its package names no types for its module form, so that Node reads the other one.
const require = createRequire(import.meta.url);
const Redlock = require("redlock").default;

const lease = Number(process.argv[3]);
const clients = process.argv.slice(4).map((address) => {
  const [host, port] = address.split(":");
  const client = new Client({ host, port: Number(port) });
  client.on("error", () => {}); // otherwise each lost connection is printed
  return client;
});
const redlock = new Redlock(clients);

const now = () => Number(process.hrtime.bigint() / 1000n);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/// Whether nobody else is where only one may be.
function enter(guard) {
  try {
    closeSync(openSync(guard, "wx"));
    return true;
  } catch {
    return false;
  }
}

/// One caller's calls until the end. Two that hold one lock meet at the guard's file.
async function call(end, section, name, guard) {
  const calls = { acquired: [], released: [], inTime: 0, failed: 0, overlaps: 0, error: "" };
  const note = (error) => {
    calls.failed += 1;
    calls.error ||= `${error.name}: ${error.message}`;
  };
  let start = now();
  while (now() < end) {
    let lock;
    try {
      lock = await redlock.acquire([name], lease);
    } catch (error) {
      note(error);
      continue;
    }
    calls.acquired.push(now() - start);
    if (now() < end) calls.inTime += 1;
    const alone = guard === "-" || enter(guard);
    if (!alone) calls.overlaps += 1;
    if (section > 0) await pause(section);
    if (guard !== "-" && alone) unlinkSync(guard);
    start = now();
    try {
      await lock.release();
      calls.released.push(now() - start);
    } catch (error) {
      note(error);
    }
    start = now();
  }
  return calls;
}

/// run MS CALLERS SECTION_MS NAME GUARD
async function run([length, callers, section, name, guard]) {
  const end = now() + Number(length) * 1000;
  const all = await Promise.all(
    Array.from({ length: Number(callers) }, (_, i) =>
      call(end, Number(section), name.endsWith("-") ? name + i : name, guard),
    ),
  );
  const sum = (field) => all.reduce((total, one) => total + one[field], 0);
  return {
    acquire_us: all.flatMap((one) => one.acquired),
    release_us: all.flatMap((one) => one.released),
    grants: all.map((one) => one.inTime),
    failed: sum("failed"),
    overlaps: sum("overlaps"),
    error: all.map((one) => one.error).find((error) => error !== "") ?? "",
  };
}

async function outcome(word, work) {
  const start = now();
  try {
    await work();
    return { [word]: true, us: now() - start };
  } catch (error) {
    return { [word]: false, us: now() - start, error: `${error.name}: ${error.message}` };
  }
}

const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const version = (name) => {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file)).version.replace(/^v/, "")}`;
};

await Promise.all(clients.map((client) => client.ping()));
say({ version: `${version("redlock")}, ${version("ioredis")}, Node ${process.versions.node}` });
let held;
for await (const line of createInterface({ input: process.stdin })) {
  const [order, ...rest] = line.split(" ");
  if (order === "run") say(await run(rest));
  if (order === "hold") {
    say(await outcome("held", async () => (held = await redlock.acquire([rest[0]], lease))));
  }
  if (order === "release") say(await outcome("released", () => held.release()));
}
process.exit(0);
