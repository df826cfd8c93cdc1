/**
 * The same layout with bubblewrap, where unshare is not allowed to make namespaces by itself but bwrap is. One bwrap per
 * command: it is the first process of the command's pid namespace, dies with Heddle and takes everything inside along.
 * Commands do not share a network namespace here, so one cannot reach a server another one started.
 */
import { realpath } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { killByArgument } from "../process-tree.ts";
import { findHostTool, runHostTool } from "./host-tools.ts";
import type { Layout, Step } from "./layout.ts";
import type { Holder } from "./namespaces.ts";
import type { Scratch } from "./scratch.ts";

const PROBE_TIMEOUT_MS = 10_000;
const KILL_MS = 2000;

export interface BwrapOptions {
  readonly layout: Layout;
  readonly network: "none" | "all";
  readonly scratch: Scratch;
}

export async function openBwrap({ layout, network, scratch }: BwrapOptions): Promise<Holder> {
  const { bwrap, canForbidNesting } = await findBwrap();
  const base = [...isolation(network, canForbidNesting), ...layoutArguments(layout.steps)];
  const trial = await runHostTool(bwrap, [...base, "--", findHostTool("true") ?? "true"], PROBE_TIMEOUT_MS);
  if (!trial.isOk) throw unavailable(trial.stderr.trim());
  return {
    enter: async (argv, { cwd, env }) => {
      if (argv.length === 0) throw new HeddleError("tool.invalid-arguments", "the command is empty");
      const folder = await realpath(cwd).catch(() => cwd);
      return {
        file: bwrap,
        args: [...base, "--chdir", folder, "--", ...argv],
        env: { ...env, TMPDIR: "/tmp" },
        cwd: "/",
        pidDepth: 1,
      };
    },
    // The private folder begins some argument of every bwrap of this sandbox and of no other process.
    [Symbol.asyncDispose]: async () => await killByArgument(scratch.path, KILL_MS),
  };
}

export async function findBwrap(): Promise<{ bwrap: string; canForbidNesting: boolean }> {
  const bwrap = findHostTool("bwrap");
  if (bwrap === undefined) throw unavailable("the program bwrap is missing; it is in the package bubblewrap");
  const help = await runHostTool(bwrap, ["--help"], PROBE_TIMEOUT_MS);
  return { bwrap, canForbidNesting: help.stdout.includes("--disable-userns") };
}

export function isolation(network: "none" | "all", canForbidNesting: boolean): string[] {
  const args = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--die-with-parent", "--new-session"];
  if (network === "none") args.push("--unshare-net");
  if (canForbidNesting) args.push("--disable-userns");
  return [...args, "--cap-drop", "ALL", "--ro-bind", "/", "/"];
}

function layoutArguments(steps: readonly Step[]): string[] {
  const seals: string[] = [];
  const args: string[] = [];
  for (const step of steps) {
    switch (step.kind) {
      case "bind":
        args.push(step.isWritable ? "--bind" : "--ro-bind", step.source, step.path);
        break;
      case "empty":
        args.push("--tmpfs", step.path);
        seals.push("--remount-ro", step.path);
        break;
      case "dev":
        args.push("--dev", step.path);
        break;
      case "proc":
        args.push("--proc", step.path);
        // Uid 0 of the host may write /proc/sys by its owner bits alone.
        if (process.getuid?.() === 0) seals.push("--remount-ro", step.path);
        break;
    }
  }
  return [...args, ...seals];
}

function unavailable(reason: string): HeddleError {
  return new HeddleError("sandbox.unavailable", `bwrap: ${reason}`);
}
