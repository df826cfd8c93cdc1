/** Where the doors of `heddle serve` and `heddle watch --ui` are, in words. */
import { isIP } from "node:net";
import path from "node:path";
import { usage, type OptionSpec } from "../args.ts";
import { TLS_OPTIONS } from "./tls.ts";

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

export type ServeAt =
  | { readonly kind: "unix"; readonly path: string | undefined }
  | {
      readonly kind: "tcp";
      readonly host: string;
      readonly port: number;
      readonly hasTls: boolean;
      readonly isRemembered?: true;
    };

export function parseServeAt(text: string, cwd: string): ServeAt {
  if (text.startsWith("unix://")) {
    const given = text.slice("unix://".length);
    return { kind: "unix", path: given === "" ? undefined : path.resolve(cwd, given) };
  }
  const [, secure, six, four, port] =
    /^(?:http|ws)(s?):\/\/(?:\[([0-9a-f:.]+)\]|([0-9.]+)):(\d{1,5})\/?$/i.exec(text) ?? [];
  const host = six ?? four ?? "";
  if (isIP(host) !== 0 && Number(port) <= 65_535)
    return { kind: "tcp", host, port: Number(port), hasTls: secure !== "" };
  throw usage(`--listen "${text}" is none of http://IP:PORT, https://IP:PORT, unix://PATH, unix://`);
}
