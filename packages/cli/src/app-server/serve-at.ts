/** `--listen` of `heddle serve` in words. */
import { isIP } from "node:net";
import path from "node:path";
import { usage } from "../args.ts";

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
