/**
 * What a call wants beyond its envelope, made exact before anybody is asked: paths are those that would really be opened,
 * whatever links led there, and what the envelope gives already is left out. So the answer covers what was shown.
 */
import { realpathSync, statSync } from "node:fs";
import { HeddleError, type Envelope, type HopWish, type HopScope, type Permissions } from "@heddle/protocol";
import { absolutePath, isInside } from "./call-path.ts";
import { checkPath } from "./path-rules.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";

/** The envelope a call runs in, and what holds it. */
export interface Walls {
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
}

/** A wish that was granted and is about to be used. */
export interface Hop {
  readonly callId: string;
  readonly wish: HopWish;
  readonly scope: HopScope;
  /** By an earlier answer that covers this call too. */
  readonly isRemembered: boolean;
}

/** Who may let a call out of its envelope. */
export interface Hops {
  /** Throws `ceiling.exceeded` when no answer could allow it. */
  check(wish: HopWish): void;
  /** Durable when it resolves; the walls to run behind. */
  take(hop: Hop): Promise<Walls>;
  refuse(callId: string, wish: HopWish, error: HeddleError): Promise<void>;
}

/** undefined: the envelope gives all of it. Throws for a path that cannot be given. */
export function exactWish(wish: HopWish, envelope: Envelope, cwd: string): HopWish | undefined {
  if (envelope.sandbox === "off") return undefined;
  if (wish.kind === "outside") return wish;
  const { permissions } = wish;
  const write = exactPaths(permissions.write, envelope, cwd).filter(
    (path) => !envelope.writeRoots.some((root) => isInside(path, root)),
  );
  for (const path of write) requireFolder(path);
  const network = permissions.network && envelope.network !== "all";
  if (write.length === 0 && !network) return undefined;
  // What may be read is told as it was asked, because no wall stands in its way.
  const read = exactPaths(permissions.read, envelope, cwd);
  return { kind: "wider", permissions: { read, write, network } };
}

/** Only what was asked for can be granted. */
export function grantedWish(wish: HopWish, granted: Permissions | undefined): HopWish {
  if (wish.kind === "outside" || granted === undefined) return wish;
  const { read, write, network } = wish.permissions;
  const permissions = {
    read: read.filter((path) => granted.read.includes(path)),
    write: write.filter((path) => granted.write.includes(path)),
    network: network && granted.network,
  };
  return { kind: "wider", permissions };
}

function exactPaths(paths: readonly string[], envelope: Envelope, cwd: string): string[] {
  const exact = paths.map((path) => {
    const absolute = absolutePath(path, cwd);
    checkPath(absolute, "read", envelope);
    const real = realOf(absolute);
    checkPath(real, "read", envelope);
    return real;
  });
  return [...new Set(exact)];
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new HeddleError("path.invalid", `${path} does not exist; ask for a folder that does`, { cause });
  }
}

function requireFolder(path: string): void {
  if (!statSync(path).isDirectory()) throw new HeddleError("path.invalid", `${path} is no folder; ask for one`);
}
