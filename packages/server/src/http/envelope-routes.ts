/** The envelopes that a thread could be in, from the one registry. */
import { EnvelopeDetail, EnvelopeList, EnvelopeNameParams, EnvelopesQuery } from "@heddle/protocol/http";
import { envelopeFolders, readEnvelopes, viewEnvelope, viewEnvelopes, type Envelopes } from "@heddle/tools/envelopes";
import { folderFor } from "../access/folders.ts";
import { route, type HttpCall, type Route } from "./route.ts";

/** Others than the owner are told of projects in the server's own folder. */
async function envelopesIn(wanted: string | undefined, { context, principal }: HttpCall): Promise<Envelopes> {
  const { home, cwd } = context;
  return readEnvelopes(envelopeFolders(home, await folderFor({ principal, wanted, cwd })));
}

export const ENVELOPE_ROUTES: readonly Route[] = [
  route({
    name: "listEnvelopes",
    on: "GET /api/envelopes",
    summary: "The envelopes that can be named, and the ways between them",
    scope: "read",
    query: EnvelopesQuery,
    answer: EnvelopeList,
    async handle({ query: { workspace } }, call) {
      const data = viewEnvelopes(await envelopesIn(workspace, call)).map(told);
      return { data, edges: data.flatMap(({ id: from, exits }) => exits.map((edge) => ({ from, ...edge }))) };
    },
  }),
  route({
    name: "readEnvelope",
    on: "GET /api/envelopes/{name}",
    summary: "What one envelope allows, and the ways out of it",
    scope: "read",
    params: EnvelopeNameParams,
    query: EnvelopesQuery,
    answer: EnvelopeDetail,
    handle: async ({ params: { name }, query: { workspace } }, call) =>
      told(viewEnvelope((await envelopesIn(workspace, call)).entry(name))),
  }),
];

const told = (view: ReturnType<typeof viewEnvelope>): EnvelopeDetail => EnvelopeDetail.parse(view);
