/** Options of commands that open doors, and what they come to. */
import path from "node:path";
import type { DoorChoices, TlsFiles } from "@heddle/runtime/doors";
import type { OptionSpec, ParsedArgs } from "./args.ts";
import { pageFolder } from "./page-folder.ts";

export const TLS_OPTIONS: readonly OptionSpec[] = [
  { name: "tls-cert", value: "FILE", completes: "file", help: "The certificate to show, with its chain, in PEM" },
  { name: "tls-key", value: "FILE", completes: "file", help: "Its private key in PEM, readable by its owner alone" },
];

export const DOOR_OPTIONS: readonly OptionSpec[] = [
  {
    name: "listen",
    value: "URL",
    isMultiple: true,
    help: "http://IP:PORT, https://IP:PORT, unix://PATH, or unix:// (default: a port of this machine alone, and unix://)",
  },
  ...TLS_OPTIONS,
  { name: "allow-non-loopback", help: "Listen where other machines can reach it, without TLS" },
  { name: "allow-host", value: "NAME", isMultiple: true, help: "Another name under which clients may call" },
];

export function tlsFiles(args: ParsedArgs, cwd: string): TlsFiles {
  const [cert, key] = ["tls-cert", "tls-key"].map((name) => {
    const given = args.value(name);
    return given === undefined ? undefined : path.resolve(cwd, given);
  });
  return { cert, key };
}

export function doorChoices(args: ParsedArgs, cwd: string): DoorChoices {
  return {
    listen: args.values("listen"),
    tls: tlsFiles(args, cwd),
    allowsNonLoopback: args.has("allow-non-loopback"),
    names: args.values("allow-host"),
    pageFolder: args.has("no-ui") ? undefined : pageFolder(),
  };
}
