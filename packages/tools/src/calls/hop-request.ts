/**
 * What a call requests beyond its envelope, made exact before the user is asked: paths are resolved, and what the
 * envelope already gives is left out. So the answer covers what was shown.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import {
  HeddleError,
  isHeddleError,
  type By,
  type Envelope,
  type HopRequest,
  type HopScope,
  type Permissions,
} from "@heddle/protocol";
import { absolutePath, isInside } from "./call-path.ts";
import { checkPath, checkProtected, components, type PathRules } from "../files/path-rules.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** The envelope a call runs in, with its sandbox. */
export interface SandboxContext {
  readonly envelope: Envelope;
  readonly sandbox: Sandbox;
}

/** A granted request that is about to be used: by an answer, or by an earlier one that covers it. */
export interface Hop extends By {
  readonly callId: string;
  readonly request: HopRequest;
  readonly scope: HopScope;
}

export interface Hops {
  /** Throws `ceiling.exceeded` when no answer could allow it. */
  check(request: HopRequest): void;
  /** Durable when it resolves; returns what to run in. */
  take(hop: Hop): Promise<SandboxContext>;
  refuse(callId: string, request: HopRequest, error: HeddleError): Promise<void>;
}

/** undefined: the envelope gives all of it. Throws for a path that cannot be granted. */
export function exactRequest(request: HopRequest, envelope: Envelope, cwd: string): HopRequest | undefined {
  if (envelope.sandbox === "off") return undefined;
  if (request.kind === "outside") return request;
  const { permissions } = request;
  const write = exactPaths(permissions.write, envelope, cwd).filter(
    (path) => !envelope.writeRoots.some((root) => isInside(path, root)),
  );
  for (const path of write) requireFolder(path);
  const network = permissions.network && envelope.network !== "all";
  const read = exactPaths(permissions.read, envelope, cwd);
  // Where everything may be read, it is listed as requested.
  const isAllRead = read.every((path) => isReadable(path, envelope));
  if (write.length === 0 && !network && isAllRead) return undefined;
  return { kind: "wider", permissions: { read, write, network } };
}

/**
 * The folder that has to be opened so that a file can be written; none when it may be written already. Throws when it
 * cannot be granted: masked, protected, or no user to ask.
 */
export function foldersBeyond(path: string, envelope: Envelope, { mayAsk }: { readonly mayAsk: boolean }): string[] {
  try {
    checkPath(path, "write", envelope);
    return [];
  } catch (error) {
    const isOutside = isHeddleError(error) && error.code === "path.outside";
    if (!isOutside || !mayAsk || envelope.approval === "never" || envelope.sandbox === "off") throw error;
  }
  checkPath(path, "read", unlimited(envelope));
  checkProtected(path, components(path));
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  return [realOf(folder)];
}

/** Nothing beyond the request can be granted. */
export function grantedRequest(request: HopRequest, granted: Permissions | undefined): HopRequest {
  if (request.kind === "outside" || granted === undefined) return request;
  const { read, write, network } = request.permissions;
  const permissions = {
    read: read.filter((path) => granted.read.includes(path)),
    write: write.filter((path) => granted.write.includes(path)),
    network: network && granted.network,
  };
  return { kind: "wider", permissions };
}

function exactPaths(paths: readonly string[], envelope: Envelope, cwd: string): string[] {
  // Where nobody can be asked, what is not visible is not told from what is not there.
  const rules = envelope.approval === "never" ? envelope : unlimited(envelope);
  const exact = paths.map((path) => {
    const absolute = absolutePath(path, cwd);
    checkPath(absolute, "read", rules);
    const real = realOf(absolute);
    checkPath(real, "read", rules);
    return real;
  });
  return [...new Set(exact)];
}

/** What lies beside the read roots can be asked for; what is masked cannot. */
function unlimited({ writeRoots, masked }: Envelope): PathRules {
  return { writeRoots, masked };
}

function isReadable(path: string, { readRoots, writeRoots }: Envelope): boolean {
  return readRoots === undefined || [...readRoots, ...writeRoots].some((root) => isInside(path, root));
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new HeddleError("path.invalid", `${path} does not exist; ask for a folder that does`, { cause });
  }
}

function requireFolder(path: string): void {
  if (!statSync(path).isDirectory()) throw new HeddleError("path.invalid", `${path} is not a folder; ask for one`);
}
