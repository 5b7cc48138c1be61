// Histories of the npm package redlock: node redlock.js URL FOLDER.
import { readFileSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";
import Redlock from "redlock";

const [url, folder] = process.argv.slice(2);
const KEY = "pybench-judge:redlock";
const LEASE_MS = 2000;
const END = Date.now() + 2000;
const boot = readFileSync("/proc/sys/kernel/random/boot_id", "ascii").trim();
const now = () => process.hrtime.bigint(); // CLOCK_MONOTONIC in nanoseconds

async function work(number) {
  const client = new Redis(url);
  const redlock = new Redlock([client], { retryCount: 0 });
  redlock.on("error", () => {}); // A busy key is no error here.
  const file = openSync(join(folder, `redlock-${number}.jsonl`), "w");
  const line = (text) => writeSync(file, text + "\n");
  const write = (event, more = "") =>
    line(`{"t":${now()},"client":"redlock-${number}","event":"${event}","key":"${KEY}"${more}}`);
  line(JSON.stringify({ pybench_history: 1, clock: "monotonic", boot_id: boot, lock: "npm redlock" }));
  while (Date.now() < END) {
    write("acquire");
    let lock, until;
    while (!lock && Date.now() < END) {
      until = now() + BigInt(LEASE_MS) * 1000000n; // Counted from before the attempt is sent.
      lock = await redlock.acquire([KEY], LEASE_MS).catch(() => null);
      if (!lock) await sleep(Math.random() * 2);
    }
    if (!lock) {
      write("gave-up");
      break;
    }
    write("granted", `,"until":${until}`);
    await sleep(1);
    write("released"); // Before the release is sent.
    await lock.release().catch(() => now() < until && write("denied"));
  }
  client.disconnect();
}

await Promise.all([...Array(8).keys()].map(work));
