/**
 * The sandbox of an agent program: that of the turn, and besides it the program's own folders, for writing, and the hosts of its
 * models. Logins of other programs and of the user do not exist in it.
 */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Envelope, Network } from "@heddle/protocol";
import { foldersAround } from "../../sandboxes/program-folders.ts";
import { ownFolders, type AgentProgram } from "./find-program.ts";
import { CREDENTIAL_PLACES, KNOWN_PROGRAMS } from "./known.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ProgramSandbox {
  readonly envelope: Envelope;
  /** Folders that would be hidden, and that its program needs. */
  readonly visible: readonly string[];
}

export function sandboxFor(
  envelope: Envelope,
  program: AgentProgram,
  { path, env, workspace }: { readonly path: string; readonly env: Environment; readonly workspace: string },
): ProgramSandbox {
  const own = ownFolders(program);
  const masked = [...envelope.masked, ...foreignPlaces(own, env, workspace)];
  return {
    envelope: {
      ...envelope,
      writeRoots: [...new Set([...envelope.writeRoots, ...own])],
      ...(envelope.readRoots === undefined
        ? {}
        : { readRoots: [...new Set([...envelope.readRoots, ...own, packageOf(path)])] }),
      masked: [...new Set(masked)],
      network: withHosts(envelope.network, program.hosts),
    },
    visible: foldersAround([path, program.command, ...program.args, packageOf(path), ...own]),
  };
}

/** A program reads the files that lie around it. */
function packageOf(path: string): string {
  return dirname(dirname(path));
}

function withHosts(network: Network, hosts: readonly string[]): Network {
  if (network === "all" || hosts.length === 0) return network;
  return [...new Set([...(network === "none" ? [] : network), ...hosts])];
}

function foreignPlaces(own: readonly string[], env: Environment, workspace: string): readonly string[] {
  const home = env["HOME"];
  if (home === undefined) return [];
  const others = Object.values(KNOWN_PROGRAMS).flatMap(({ folders }) => folders(home, env));
  return [...others, ...CREDENTIAL_PLACES.map((place) => join(home, place))]
    .filter((place) => existsSync(place))
    .map((place) => realpathSync(place))
    .filter((place) => !own.some((folder) => isAround(folder, place)) && !isAround(place, workspace));
}

/** One of them lies in the other, or they are the same. */
function isAround(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
