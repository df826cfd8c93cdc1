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

/** Port of OpenLoom's page, when only its host is said. */
const OPENLOOM_PORT = "55413";

/** What `--listen` says; without it what OpenLoom's variables say, beside the private socket. */
export function wishedPlaces(listen: readonly string[], cwd: string, env: NodeJS.ProcessEnv): readonly ServeAt[] {
  const [host, port] = [env["OPENLOOM_UI_HOST"] ?? "", env["OPENLOOM_UI_PORT"] ?? ""];
  if (listen.length > 0 || (host === "" && port === "")) return listen.map((text) => parseServeAt(text, cwd));
  const ip = host === "" || host === "localhost" ? "127.0.0.1" : host;
  if (isIP(ip) === 0) throw usage(`OPENLOOM_UI_HOST "${host}" is no IP address; write 127.0.0.1, or use --listen`);
  if (port !== "" && !/^\d{1,5}$/.test(port))
    throw usage(`OPENLOOM_UI_PORT "${port}" is no port; write a number up to 65535, or use --listen`);
  const url = `http://${ip.includes(":") ? `[${ip}]` : ip}:${port === "" ? OPENLOOM_PORT : port}`;
  return [parseServeAt(url, cwd), { kind: "unix", path: undefined }];
}

function parseServeAt(text: string, cwd: string): ServeAt {
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
