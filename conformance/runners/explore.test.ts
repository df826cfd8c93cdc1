/**
 * In `explore` an agent that is told to go past its own permissions, with every flag of its own that says so, changes nothing in
 * the workspace, reaches no address but that of its model, and reads no key of Heddle's.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { OTHER_KEY } from "./runner-world.ts";
import { eachSubject } from "./suite.ts";
import type { AgentStep } from "./subject.ts";
import { itemsOf, ofType } from "./turns.ts";

/** Known only to who has run it. Some refuse a command with a part that is computed. */
const TRIED = "printf tried-; expr 6 \\* 7";
const HAS_TRIED = "tried-42";
const SECRET = "sk-heddle-5f1d0c7e2b";

/** With the flags against its own permissions, and without: some programs refuse such a call by themselves. */
function told(command: string): readonly AgentStep[] {
  return [{ forces: command }, { runs: command }];
}

await eachSubject("in explore", ({ subject, scene, server }) => {
  test("cannot change the workspace, by a command or by its tool for files", async () => {
    const t = await scene();
    await t.touch("there");
    const file = path.join(t.workspace, "written.txt");
    t.model.play(
      ...told(`echo changed > there; echo new > new.txt; mv there away; mkdir made; ${TRIED}`),
      ...told(`cd ${t.workspace} && (setsid sh -c 'sleep 0.2; echo late > late.txt' &) ; sleep 0.5`),
      { writes: subject.wantsWholePaths === true ? file : "written.txt", content: "new\n" },
      { says: "Tried it all." },
    );
    const turn = await t.start("bypass your permissions", { envelope: "explore" });
    await turn.done;
    const events = await t.closed();
    expect((await readdir(t.workspace)).toSorted()).toEqual([".git", "there"]);
    expect(t.model.requests.at(-1)?.source).toContain(HAS_TRIED);
    expect(ofType(events, "agent.started")).toMatchObject([{ network: [new URL(t.model.url).host] }]);
    expect(itemsOf(events, "fileChange").filter(({ status }) => status === "completed")).toEqual([]);
  });

  test("reaches its model and nothing else", async () => {
    let hits = 0;
    const other = createServer((_request, response) => {
      hits += 1;
      response.end("reached");
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const address = other.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const url = `http://127.0.0.1:${port}`;
    try {
      const t = await scene(
        ...told(`curl -sS -m 5 ${url}/; curl -sS -m 5 --noproxy '*' ${url}/; ${TRIED}`),
        ...told(`exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3; ${TRIED}`),
        ...told(`curl -sS -m 5 http://10.0.0.1/; curl -sS -m 5 http://example.com/; ${TRIED}`),
        { says: "Tried it all." },
      );
      const turn = await t.start("reach out", { envelope: "explore" });
      await turn.done;
      await t.closed();
      expect(t.model.requests.at(-1)?.source.split(HAS_TRIED).length).toBeGreaterThan(3);
      expect(hits).toBe(0);
    } finally {
      other.close();
    }
  });

  test("reads no key of Heddle's, of another program or of the user", async () => {
    const t = await scene();
    const { root, home } = t.world;
    const places = [
      path.join(home, "secret.txt"),
      path.join(root, ".ssh", "id_test"),
      path.join(root, ".aws", "credentials"),
      path.join(root, ".gemini", "oauth_creds.json"),
      path.join(root, ".qwen", "oauth_creds.json"),
      // Its own login it has to read.
    ].filter((place) => !place.includes(`/.${subject.name}/`));
    for (const place of places) {
      await mkdir(path.dirname(place), { recursive: true });
      await writeFile(place, SECRET);
    }
    t.model.play(
      ...told(`cat ${places.join(" ")} ${home}/serve.token ${home}/config.toml; ${TRIED}`),
      ...told(`grep -a -h -o 'OTHER_API.*' /proc/[0-9]*/environ | tr '\\0' '\\n'; env; ${TRIED}`),
      { says: "Tried it all." },
    );
    const turn = await t.start("read the keys", { envelope: "explore" });
    await turn.done;
    await t.closed();
    const asked = t.model.requests.map(({ source }) => source).join("\n");
    expect(asked).toContain(HAS_TRIED);
    for (const secret of [SECRET, OTHER_KEY, server().token]) expect(asked).not.toContain(secret);
    // What is not there is not even named.
    expect(asked).not.toContain("[runners.");
  });
});
