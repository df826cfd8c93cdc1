/** Loaded before a server: writes down every turn of its event loop that took the processor for long, with the time of day. */
import { appendFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const LEAST_MS = 20;
const file = process.env["LOOP_METER"];

if (isMainThread && file !== undefined) {
  let used = process.threadCpuUsage();
  const meter = setInterval(() => {
    const { user, system } = process.threadCpuUsage(used);
    const ms = (user + system) / 1_000;
    if (ms > LEAST_MS) appendFileSync(file, `${Date.now()} ${ms}\n`);
    used = process.threadCpuUsage();
  }, 1);
  meter.unref();
}
