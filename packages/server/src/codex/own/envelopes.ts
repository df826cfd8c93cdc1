/** The envelopes that a thread could be in, from the one registry. */
import { envelopeFolders, readEnvelopes, viewEnvelope, viewEnvelopes, type Envelopes } from "@heddle/tools/envelopes";
import { z } from "zod";
import type { Call } from "../../rpc/call.ts";
import { folderOf } from "../handlers/threads.ts";
import { ownMethod } from "./own-method.ts";

const MAX_NAME_CHARS = 200;
/** Whose project's envelopes count besides; absent: the server's folder. */
const cwd = z.string().min(1).optional();

export const listEnvelopes = ownMethod(z.strictObject({ cwd }), async (params, call) => ({
  result: { data: viewEnvelopes(await envelopesFor(params.cwd, call)) },
}));

const Read = z.strictObject({ name: z.string().min(1).max(MAX_NAME_CHARS), cwd });

export const readEnvelope = ownMethod(Read, async (params, call) => ({
  result: { envelope: viewEnvelope((await envelopesFor(params.cwd, call)).entry(params.name)) },
}));

async function envelopesFor(folder: string | undefined, { server }: Call): Promise<Envelopes> {
  return readEnvelopes(envelopeFolders(server.home, await folderOf(folder, server)));
}
