/** Every option that the Codex SDK has, over Codex and over Heddle. */
import path from "node:path";
import { Codex } from "@openai/codex-sdk";
import { describe, expect, test } from "vitest";
import { command, MOCK_PROVIDER, say } from "./exec-case.ts";
import { codex, heddle } from "./program.ts";
import { openSdkWorld } from "./sdk-thread.ts";

describe.each([codex(), heddle])("@openai/codex-sdk over $name", (program) => {
  const isHeddle = program.name === "heddle";

  describe("thread options", () => {
    test("model", async () => {
      await using world = await openSdkWorld(program);
      await world
        .open()
        .startThread({ ...world.thread, model: "gpt-5.6-sol" })
        .run("do it");
      expect(world.request(0).model).toBe("gpt-5.6-sol");
    });

    test.each(["low", "medium", "high", "xhigh"] as const)("modelReasoningEffort %s", async (modelReasoningEffort) => {
      await using world = await openSdkWorld(program);
      await world
        .open()
        .startThread({ ...world.thread, modelReasoningEffort })
        .run("do it");
      expect(world.request(0).effort).toBe(modelReasoningEffort);
    });

    test.each([
      { sandboxMode: "read-only", made: undefined, outside: undefined },
      { sandboxMode: "workspace-write", made: "x\n", outside: undefined },
      { sandboxMode: "danger-full-access", made: "x\n", outside: "x\n" },
    ] as const)("sandboxMode $sandboxMode", async ({ sandboxMode, made, outside }) => {
      const script = [command("echo x > made.txt; echo x > ../outside.txt; sleep 0.3"), say("Done.")];
      await using world = await openSdkWorld(program, { script });
      await world
        .open()
        .startThread({ ...world.thread, sandboxMode })
        .run("do it");
      expect(await world.fixture.look("ws/made.txt")).toBe(made);
      expect(await world.fixture.look("outside.txt")).toBe(outside);
    });

    test("additionalDirectories", async () => {
      const script = [command("echo x > ../more/made.txt; sleep 0.3"), say("Done.")];
      await using world = await openSdkWorld(program, { script, files: { "more/keep.txt": "" } });
      const additionalDirectories = [path.join(world.fixture.root, "more")];
      await world
        .open()
        .startThread({ ...world.thread, sandboxMode: "workspace-write", additionalDirectories })
        .run("do it");
      expect(await world.fixture.look("more/made.txt")).toBe("x\n");
    });

    test.each([
      { networkAccessEnabled: true, output: "code 0\n" },
      { networkAccessEnabled: false, output: "code 7\n" },
    ])("networkAccessEnabled $networkAccessEnabled", async ({ networkAccessEnabled, output }) => {
      const script: ReturnType<typeof command>[] = [];
      await using world = await openSdkWorld(program, { script });
      script.push(command(`sleep 0.3; curl -s -o /dev/null -m 3 ${world.server.url}/ping; echo code $?`), say("Done."));
      const thread = world
        .open()
        .startThread({ ...world.thread, sandboxMode: "workspace-write", networkAccessEnabled });
      const { items } = await thread.run("do it");
      expect(items[0]).toMatchObject({ type: "command_execution", aggregated_output: output });
    });

    test.each([
      { webSearchMode: "disabled" },
      { webSearchMode: "cached" },
      { webSearchMode: "live" },
      { webSearchEnabled: true },
      { webSearchEnabled: false },
      { approvalPolicy: "never" },
      { approvalPolicy: "on-request" },
      { approvalPolicy: "on-failure" },
      { threadSource: "ci" },
    ] as const)("%o is accepted", async (option) => {
      await using world = await openSdkWorld(program);
      const turn = await world
        .open()
        .startThread({ ...world.thread, ...option })
        .run("do it");
      expect(turn.finalResponse).toBe("Hello.");
    });

    test.each(["untrusted"] as const)(
      `approvalPolicy %s, which Codex has dropped, ${isHeddle ? "is still accepted" : "is refused"}`,
      async (approvalPolicy) => {
        await using world = await openSdkWorld(program);
        const turn = world
          .open()
          .startThread({ ...world.thread, approvalPolicy })
          .run("do it");
        if (isHeddle) expect(await turn).toMatchObject({ finalResponse: "Hello." });
        else await expect(turn).rejects.toThrow();
      },
    );

    test.each(["minimal", "max", "ultra", "persistent"] as const)(
      "modelReasoningEffort %s reaches a model, which decides",
      async (modelReasoningEffort) => {
        await using world = await openSdkWorld(program);
        const turn = await world
          .open()
          .startThread({ ...world.thread, modelReasoningEffort })
          .run("do it");
        expect(turn.finalResponse).toBe("Hello.");
      },
    );
  });

  describe("options of the client", () => {
    test("config is flattened into overrides", async () => {
      await using world = await openSdkWorld(program, { config: "" });
      const config = {
        model: "gpt-5.5",
        model_provider: "other",
        model_providers: {
          other: {
            name: "other",
            base_url: `${world.server.url}/v1`,
            wire_api: "responses",
            http_headers: { "x-a": "b" },
          },
        },
        sandbox_workspace_write: { writable_roots: [] },
      };
      expect(await world.open({ config }).startThread(world.thread).run("do it")).toMatchObject({
        finalResponse: "Hello.",
      });
      expect(world.server.requests[0]?.headers["x-a"]).toBe("b");
    });

    test("configOverrides go through as they are", async () => {
      await using world = await openSdkWorld(program, { config: MOCK_PROVIDER });
      const configOverrides = ["model_provider=mock", 'model="gpt-5.5"', "model_reasoning_effort=low"];
      await world.open({ configOverrides }).startThread(world.thread).run("do it");
      expect(world.request(0)).toMatchObject({ model: "gpt-5.5", effort: "low" });
    });

    test("baseUrl and apiKey reach the provider that is built in", async () => {
      await using world = await openSdkWorld(program, { config: 'model = "gpt-5.5"\n' });
      const client = world.open({ baseUrl: `${world.server.url}/v1`, apiKey: "sdk-key" });
      expect(await client.startThread(world.thread).run("do it")).toMatchObject({ finalResponse: "Hello." });
      expect(world.server.requests[0]?.headers.authorization).toBe("Bearer sdk-key");
    });

    test("without env the caller's environment is used", async () => {
      await using world = await openSdkWorld(program);
      const before = { ...process.env };
      Object.assign(process.env, world.fixture.env);
      try {
        const client = new Codex({ codexPathOverride: program.file });
        expect(await client.startThread(world.thread).run("do it")).toMatchObject({ finalResponse: "Hello." });
      } finally {
        process.env = before;
      }
    });
  });
});
