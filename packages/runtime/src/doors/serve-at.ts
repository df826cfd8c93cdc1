/** Where the doors of `heddle serve` and `heddle watch --ui` are, as text. */
import { isIP } from "node:net";
import { HeddleError } from "@heddle/protocol";
import { parseAddress, type TcpAt, type UnixAt } from "./address.ts";

export type ServeAt = UnixAt | (TcpAt & { readonly isRemembered?: true });

/** Port of OpenLoom's page, when only its host is said. */
const OPENLOOM_PORT = "55413";

/** What `--listen` says; without it what OpenLoom's variables say, beside the private socket. */
export function chosenPlaces(listen: readonly string[], cwd: string, env: NodeJS.ProcessEnv): readonly ServeAt[] {
  const [host, port] = [env["OPENLOOM_UI_HOST"] ?? "", env["OPENLOOM_UI_PORT"] ?? ""];
  if (listen.length > 0 || (host === "" && port === "")) return listen.map((text) => parseServeAt(text, cwd));
  const ip = host === "" || host === "localhost" ? "127.0.0.1" : host;
  if (isIP(ip) === 0)
    throw new HeddleError(
      "usage.invalid",
      `OPENLOOM_UI_HOST "${host}" is not an IP address; write 127.0.0.1, or use --listen`,
    );
  if (port !== "" && !/^\d{1,5}$/.test(port))
    throw new HeddleError(
      "usage.invalid",
      `OPENLOOM_UI_PORT "${port}" is not a port; write a number up to 65535, or use --listen`,
    );
  const url = `http://${ip.includes(":") ? `[${ip}]` : ip}:${port === "" ? OPENLOOM_PORT : port}`;
  return [parseServeAt(url, cwd), { kind: "unix", path: undefined }];
}

function parseServeAt(text: string, cwd: string): ServeAt {
  const at = parseAddress(text, cwd, ["http", "ws"]);
  if (at !== undefined) return at;
  throw new HeddleError(
    "usage.invalid",
    `--listen "${text}" must be one of http://IP:PORT, https://IP:PORT, unix://PATH, unix://`,
  );
}
