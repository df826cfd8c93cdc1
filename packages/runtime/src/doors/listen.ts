/** `--listen` of app-server: where clients may come from, and what they must show. */
import path from "node:path";
import { HeddleError, reasonOf } from "@heddle/protocol";
import {
  ensureTokenFile,
  listenUnix,
  listenWebsocket,
  readTokenFile,
  tokenCheck,
  type AppServer,
  type Listener,
  type TlsPair,
} from "@heddle/server";
import { parseAddress, type TcpAt, type UnixAt } from "./address.ts";

export { readTls, refuseOpenDoor } from "./address.ts";

export type ListenAt = { readonly kind: "stdio" } | { readonly kind: "off" } | UnixAt | TcpAt;

export function parseListen(text: string, cwd: string): ListenAt {
  if (text === "stdio://" || text === "stdio") return { kind: "stdio" };
  if (text === "off") return { kind: "off" };
  const at = parseAddress(text, cwd, ["ws"]);
  if (at !== undefined) return at;
  throw new HeddleError(
    "usage.invalid",
    `--listen "${text}" must be one of stdio://, unix://, unix://PATH, ws://IP:PORT, wss://IP:PORT, off`,
  );
}

const OWN_SOCKET = "app-server.sock";
const OWN_TOKEN = "app-server.token";

export interface TokenChoice {
  /** Absolute. */
  readonly file: string | undefined;
  readonly sha256: string | undefined;
}

export interface ListenContext {
  readonly home: string;
  /** Absent: one in the home, made when it is missing. */
  readonly token: TokenChoice;
  readonly log: (line: string) => void;
  readonly tls: TlsPair | undefined;
}

export async function listen(
  at: Extract<ListenAt, { kind: "unix" | "tcp" }>,
  server: AppServer,
  context: ListenContext,
): Promise<Listener> {
  // How a client left is of no interest to anybody else.
  const onChannel = (channel: Parameters<AppServer["accept"]>[0]): void => {
    server.accept(channel).catch((error: unknown) => context.log(reasonOf(error)));
  };
  const isReady = (): Promise<boolean> => server.isReady();
  if (at.kind === "unix") return listenUnix(at.path ?? path.join(context.home, OWN_SOCKET), onChannel, { isReady });
  const check = tokenCheck(await tokenHash(context));
  const isAllowed = check.isAllowed.bind(check);
  return listenWebsocket(at, { isAllowed, onChannel, isReady, tls: context.tls });
}

async function tokenHash({ token: { file, sha256 }, home, log }: ListenContext): Promise<string> {
  if (file !== undefined && sha256 !== undefined) {
    throw new HeddleError("usage.invalid", "give --ws-token-file or --ws-token-sha256, not both");
  }
  if (sha256 !== undefined) return sha256;
  if (file !== undefined) return readTokenFile(file);
  const own = path.join(home, OWN_TOKEN);
  const made = await ensureTokenFile(own);
  log(`clients send the token in ${own}: Authorization: Bearer TOKEN`);
  return made;
}
