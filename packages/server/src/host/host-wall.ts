/** The wall around what a client runs without saying which: that of a turn without wishes. */
import { isHeddleError } from "@heddle/protocol";
import type { SandboxWish } from "@heddle/dialects/codex-app-server";
import type { ServerContext } from "../rpc/call.ts";

/** What nobody has configured is read-only. */
export async function defaultWall({ settings }: ServerContext): Promise<SandboxWish> {
  try {
    return await settings.resolve({});
  } catch (error) {
    if (isHeddleError(error)) return { sandboxMode: "read-only" };
    throw error;
  }
}
