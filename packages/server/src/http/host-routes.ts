/** The server itself: sandbox, models, accounts. */
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import { takeTurn } from "../record/one-at-a-time.ts";
import { route, type Route } from "./route.ts";
import {
  AccountsAnswer,
  DoctorAnswer,
  ModelsAnswer,
  ModelsQuery,
  SandboxAnswer,
  ServerAnswer,
} from "@heddle/protocol/http";

export const HOST_ROUTES: readonly Route[] = [
  route({
    name: "readServer",
    on: "GET /api/server",
    summary: "Version, who you are here, and the achieved sandbox level",
    scope: "read",
    answer: ServerAnswer,
    async handle(_given, { context: { version, facts }, principal }) {
      if (principal === undefined) throw new HeddleError("door.unauthorized", "a token is needed");
      const { level, backends } = await facts.sandbox();
      return {
        version,
        principal: { name: principal.name, role: principal.role },
        sandbox: { level, backends: [...backends] },
      };
    },
  }),
  route({
    name: "readSandbox",
    on: "GET /api/sandbox",
    summary: "Which sandbox back-end a turn that begins now would use",
    scope: "read",
    answer: SandboxAnswer,
    async handle(_given, { context: { facts } }) {
      const { level, backends } = await facts.sandbox();
      return { level, backends: [...backends] };
    },
  }),
  route({
    name: "listModels",
    on: "GET /api/models",
    summary: "Models by provider, and how fresh each list is",
    scope: "read",
    query: ModelsQuery,
    answer: ModelsAnswer,
    async handle({ query: { provider } }, { context: { facts } }) {
      const listings = await facts.models(provider);
      return {
        data: listings.map((listing) => ({ ...listing, models: listing.models.map((model) => ({ ...model })) })),
      };
    },
  }),
  route({
    name: "listAccounts",
    on: "GET /api/accounts",
    summary: "Who is logged in where; statuses only, never a secret",
    scope: "admin",
    answer: AccountsAnswer,
    async handle(_given, { context: { facts } }) {
      return { data: (await facts.accounts()).map((account) => ({ ...account })) };
    },
  }),
  route({
    name: "readDoctor",
    on: "GET /api/doctor",
    summary: "What this machine lacks for Heddle, as heddle doctor says it, each with what fixes it",
    scope: "admin",
    answer: DoctorAnswer,
    async handle(_given, { context: { heddle, facts } }) {
      using _turn = takeTurn(heddle.journal, "a look at the machine");
      const data = (await facts.doctor()).map((finding) => ({ ...finding }));
      return { data, problems: data.filter(({ state }) => state === "problem").length };
    },
  }),
  route({
    name: "readOpenApi",
    on: "GET /api/openapi.json",
    summary: "This description",
    scope: "read",
    answer: z.looseObject({ openapi: z.string() }),
    // Made from the table that this row is part of, so it is loaded when it is asked for.
    handle: async (_given, { context }) => (await import("./openapi.ts")).openApi(context.version),
  }),
];
