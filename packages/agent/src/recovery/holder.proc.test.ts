import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { stateOf, thisHolder } from "./holder.ts";

const onLinux = process.platform === "linux";

test.runIf(onLinux)("this process is alive to itself", () => {
  expect(stateOf(thisHolder())).toBe("alive");
});

test.runIf(onLinux)("a process that has ended is dead, also when its pid is taken by another", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const startTicks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  const holder = { ...thisHolder(), pid, startTicks };
  expect(stateOf(holder)).toBe("alive");
  expect(stateOf({ ...holder, startTicks: "1" })).toBe("dead");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(stateOf(holder)).toBe("dead");
});

test.runIf(onLinux)("a process of an earlier boot is dead, one of another pid namespace cannot be judged", () => {
  expect(stateOf({ ...thisHolder(), bootId: "another-boot" })).toBe("dead");
  expect(stateOf({ ...thisHolder(), pidNamespace: "pid:[1]" })).toBe("unknown");
});

test.runIf(onLinux)("14.7: a process of another host cannot be judged, whatever its boot and its pid", () => {
  const here = thisHolder();
  expect(stateOf({ ...here, host: "another-host" })).toBe("unknown");
  expect(stateOf({ ...here, host: "another-host", bootId: "another-boot" })).toBe("unknown");
  // Older events name no host: they are of this one.
  const { host: _host, ...old } = here;
  expect(stateOf(old)).toBe("alive");
  expect(stateOf({ ...old, bootId: "another-boot" })).toBe("dead");
});
