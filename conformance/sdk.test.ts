/**
 * The newest Codex SDK, unchanged, with `codexPathOverride`. Every expectation is held against Codex first, then against
 * Heddle; where the two differ on purpose, the test says so by name.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { command, patch, say } from "./exec-case.ts";
import { codex, heddle } from "./program.ts";
import { collect, commandLines, openSdkWorld, SCHEMA, until, USAGE } from "./sdk-thread.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each([codex(), heddle])("@openai/codex-sdk over $name", (program) => {
  const isHeddle = program.name === "heddle";
  /** Codex says nothing on stdout before a turn, so the SDK only knows its exit code; Heddle ends every run with an event. */
  const refusal = (words: RegExp): RegExp =>
    isHeddle ? words : new RegExp(`^Codex Exec exited with code 1: [^]*(${words.source})`);

  describe("runs", () => {
    test("a run gives items, the final response and usage", async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().startThread(world.thread);
      expect(thread.id).toBeNull();
      expect(await thread.run("do it")).toEqual({
        items: [{ id: "item_0", type: "agent_message", text: "Hello." }],
        finalResponse: "Hello.",
        usage: USAGE,
      });
      expect(thread.id).toMatch(/^[0-9a-f-]{36}$/);
      expect(world.request(0).prompts.at(-1)).toBe("do it");
    });

    test("text parts are joined by an empty line", async () => {
      await using world = await openSdkWorld(program);
      await world
        .open()
        .startThread(world.thread)
        .run([
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ]);
      expect(world.request(0).prompts.at(-1)).toBe("one\n\ntwo");
    });

    test("a streamed run yields every event in order", async () => {
      const script = [
        { reasoning: "Thinking.", ...command("echo hello; exit 3") },
        patch("*** Add File: made.txt", "+hi"),
        say("Done."),
      ];
      await using world = await openSdkWorld(program, { script });
      const thread = world.open().startThread({ ...world.thread, sandboxMode: "workspace-write" });
      const events = await collect((await thread.runStreamed("do it")).events);
      const made = path.join(world.fixture.workspace, "made.txt");
      const changes = [{ path: made, kind: "add" }];
      expect(events).toMatchObject([
        { type: "thread.started", thread_id: thread.id },
        { type: "turn.started" },
        { type: "item.completed", item: { id: "item_0", type: "reasoning", text: "Thinking." } },
        {
          type: "item.started",
          item: { id: "item_1", type: "command_execution", aggregated_output: "", status: "in_progress" },
        },
        {
          type: "item.completed",
          item: {
            id: "item_1",
            type: "command_execution",
            aggregated_output: "hello\n",
            exit_code: 3,
            status: "failed",
          },
        },
        { type: "item.started", item: { id: "item_2", type: "file_change", changes, status: "in_progress" } },
        { type: "item.completed", item: { id: "item_2", type: "file_change", changes, status: "completed" } },
        { type: "item.completed", item: { id: "item_3", type: "agent_message", text: "Done." } },
        { type: "turn.completed", usage: { input_tokens: 300, output_tokens: 60 } },
      ]);
      expect(events).toHaveLength(9);
      expect(await readFile(made, "utf8")).toBe("hi\n");
    });

    test("a second run goes on with the same thread", async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().startThread(world.thread);
      await thread.run("first");
      const id = thread.id;
      expect(await thread.run("second")).toMatchObject({ finalResponse: "Again." });
      expect(thread.id).toBe(id);
      expect(world.request(1).prompts.slice(-2)).toEqual(["first", "second"]);
    });

    test("resumeThread goes on in another process of the caller", async () => {
      await using world = await openSdkWorld(program);
      const first = world.open().startThread(world.thread);
      await first.run("first");
      const resumed = world.open().resumeThread(first.id ?? "", world.thread);
      expect(await resumed.run("second")).toMatchObject({ finalResponse: "Again." });
      expect(resumed.id).toBe(first.id);
      expect(world.request(1).prompts.slice(-2)).toEqual(["first", "second"]);
    });

    test("a streamed run can resume", async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().startThread(world.thread);
      await thread.run("first");
      const events = await collect((await thread.runStreamed("second")).events);
      expect(events.map(({ type }) => type)).toEqual([
        "thread.started",
        "turn.started",
        "item.completed",
        "turn.completed",
      ]);
      expect(events[0]).toMatchObject({ thread_id: thread.id });
    });

    test(`usage of a second run is ${isHeddle ? "its own" : "that of the whole thread"}`, async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().startThread(world.thread);
      await thread.run("first");
      const { usage } = await thread.run("second");
      expect(usage?.input_tokens).toBe(isHeddle ? 100 : 200);
    });
  });

  describe("turn options", () => {
    test("an output schema reaches the model and its answer comes back", async () => {
      await using world = await openSdkWorld(program, { script: [say('{"answer":"yes"}')] });
      const turn = await world.open().startThread(world.thread).run("do it", { outputSchema: SCHEMA });
      expect(JSON.parse(turn.finalResponse)).toEqual({ answer: "yes" });
      expect(world.request(0).format).toMatchObject({ type: "json_schema", strict: true, schema: SCHEMA });
    });

    test("a schema that is no object is refused by the SDK itself", async () => {
      await using world = await openSdkWorld(program);
      const turn = world.open().startThread(world.thread).run("do it", { outputSchema: [] });
      await expect(turn).rejects.toThrow("plain JSON object");
    });

    test("images go with the prompt, also of a resumed thread", async () => {
      await using world = await openSdkWorld(program, { setUp: `echo ${PIXEL} | base64 -d > pixel.png` });
      const image = { type: "local_image", path: path.join(world.fixture.workspace, "pixel.png") } as const;
      const thread = world.open().startThread(world.thread);
      await thread.run([{ type: "text", text: "look" }, image, image]);
      expect(world.request(0).images).toBe(2);
      await thread.run([{ type: "text", text: "look again" }, image]);
      expect(world.request(1).images).toBe(3);
    });

    test.each(["standard", "daybreak_blue", "daybreak_red"] as const)(
      "cyberAccessProgram %s changes nothing with a provider of one's own",
      async (cyberAccessProgram) => {
        await using world = await openSdkWorld(program);
        const turn = world.open().startThread(world.thread).run("do it", { cyberAccessProgram });
        expect(await turn).toMatchObject({ finalResponse: "Hello." });
      },
    );

    test("an aborted signal ends the run", async () => {
      await using world = await openSdkWorld(program, { script: [command("echo started; sleep 60"), say("Done.")] });
      const controller = new AbortController();
      const { events } = await world
        .open()
        .startThread(world.thread)
        .runStreamed("do it", { signal: controller.signal });
      const seen: string[] = [];
      const read = async (): Promise<void> => {
        for await (const event of events) {
          seen.push(event.type);
          if (event.type === "item.started") controller.abort();
        }
      };
      await expect(read()).rejects.toThrow(/abort/i);
      expect(seen.slice(0, 3)).toEqual(["thread.started", "turn.started", "item.started"]);
    });

    test.runIf(isHeddle)("an aborted run leaves no process behind (Codex does)", async () => {
      // A length that no other sleep on this machine has.
      const nap = `61.${process.pid}`;
      await using world = await openSdkWorld(program, {
        script: [command(`echo started; sleep ${nap}`), say("Done.")],
      });
      const controller = new AbortController();
      const { events } = await world
        .open()
        .startThread(world.thread)
        .runStreamed("do it", { signal: controller.signal });
      const read = async (): Promise<void> => {
        for await (const event of events) {
          if (event.type !== "item.started") continue;
          await until(async () => (await commandLines()).some((line) => line.startsWith(`sleep\0${nap}`)));
          controller.abort();
        }
      };
      await expect(read()).rejects.toThrow(/abort/i);
      await until(async () => !(await commandLines()).some((line) => line.includes(nap)));
    });

    test("a signal that is already aborted starts nothing", async () => {
      await using world = await openSdkWorld(program);
      const turn = world.open().startThread(world.thread).run("do it", { signal: AbortSignal.abort() });
      await expect(turn).rejects.toThrow(/abort/i);
      expect(world.server.requests).toHaveLength(0);
    });
  });

  describe("failures", () => {
    test("a failed turn throws its message", async () => {
      const faults = (): { kind: "status"; status: number; body: unknown } => ({
        kind: "status",
        status: 400,
        body: { error: { message: "no such thing" } },
      });
      await using world = await openSdkWorld(program, { faults });
      await expect(world.open().startThread(world.thread).run("do it")).rejects.toThrow("no such thing");
    });

    test("a streamed failure yields turn.failed, then throws the exit code", async () => {
      await using world = await openSdkWorld(program, { faults: () => ({ kind: "status", status: 400 }) });
      const { events } = await world.open().startThread(world.thread).runStreamed("do it");
      const seen: string[] = [];
      const read = async (): Promise<void> => {
        for await (const event of events) seen.push(event.type);
      };
      await expect(read()).rejects.toThrow(/^Codex Exec exited with code \d+: /);
      expect(seen).toEqual(["thread.started", "turn.started", "error", "turn.failed"]);
    });

    test("a thread goes on after a failed turn", async () => {
      await using world = await openSdkWorld(program, { faults: [{ kind: "status", status: 400 }] });
      const thread = world.open().startThread(world.thread);
      await expect(thread.run("first")).rejects.toThrow();
      expect(await thread.run("second")).toMatchObject({ finalResponse: "Hello." });
    });

    test("a thread that does not exist cannot be resumed", async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().resumeThread("01890000-0000-7000-8000-000000000000", world.thread);
      await expect(thread.run("do it")).rejects.toThrow(refusal(/no rollout found|no thread/));
      expect(world.server.requests).toHaveLength(0);
    });

    test("a folder outside any repository is refused, unless the check is skipped", async () => {
      await using world = await openSdkWorld(program, { isOutsideGit: true });
      await expect(world.open().startThread(world.thread).run("do it")).rejects.toThrow(
        refusal(/Not inside a trusted directory and --skip-git-repo-check was not specified\./),
      );
      const thread = world.open().startThread({ ...world.thread, skipGitRepoCheck: true });
      expect(await thread.run("do it")).toMatchObject({ finalResponse: "Hello." });
    });

    test("a folder that is not there is refused", async () => {
      await using world = await openSdkWorld(program);
      const thread = world.open().startThread({ workingDirectory: path.join(world.fixture.root, "none") });
      await expect(thread.run("do it")).rejects.toThrow(refusal(/No such file or directory|does not exist/));
    });

    test("an empty prompt is refused", async () => {
      await using world = await openSdkWorld(program);
      await expect(world.open().startThread(world.thread).run("")).rejects.toThrow(
        refusal(/No prompt provided via stdin/),
      );
    });
  });
});
