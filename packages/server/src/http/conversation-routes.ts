/** Conversations that agent programs keep on this machine: listed, and imported as threads. */
import { importedAs, listConversations } from "@heddle/agent/conversations";
import { importConversation } from "@heddle/agent/import-conversation";
import { defined } from "@heddle/protocol";
import {
  ConversationList,
  ConversationsQuery,
  ImportConversationBody,
  ImportedConversation,
} from "@heddle/protocol/http";
import { route, type Route } from "./route.ts";
import { limitOf } from "./thread-routes.ts";

export const CONVERSATION_ROUTES: readonly Route[] = [
  route({
    name: "listConversations",
    on: "GET /api/conversations",
    summary: "Conversations that agent programs keep on the machine of the server, newest first",
    scope: "admin",
    query: ConversationsQuery,
    answer: ConversationList,
    async handle({ query: { from, limit } }, { context: { facts, heddle } }) {
      const { conversations, total } = await listConversations(facts.programs, { from, limit: limitOf(limit) });
      const known = await importedAs(heddle.journal);
      return { data: conversations.map((one) => defined({ ...one, threadId: known(one) })), total };
    },
  }),
  route({
    name: "importConversation",
    on: "POST /api/conversations/import",
    summary: "A conversation as a thread, from the record of its program, which is only read; again: what came after",
    scope: "admin",
    body: ImportConversationBody,
    answer: ImportedConversation,
    async handle({ body: { from, handle } }, { context: { facts, heddle, cwd: folder }, by }) {
      const { journal } = heddle;
      return defined(await importConversation({ ...facts.programs, journal, by, from, handle, folder }));
    },
  }),
];
