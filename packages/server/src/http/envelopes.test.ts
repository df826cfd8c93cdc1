import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EnvelopeDetail, EnvelopeList } from "@heddle/protocol/http";
import { envelopeFolders, readEnvelopes, viewEnvelopes } from "@heddle/tools/envelopes";
import { expect, test } from "vitest";
import { ask, openHttpWorld } from "../../test/http-world.ts";

test("E8: the registry with its edges, the user's and a project's envelopes among them, for whoever may read", async () => {
  await using world = await openHttpWorld();
  const project = join(world.home, "project");
  for (const folder of [join(world.home, "envelopes"), join(project, ".heddle", "envelopes")])
    await mkdir(folder, { recursive: true });
  await writeFile(join(world.home, "envelopes", "docs.yaml"), "extends: edit\nwrite: [docs]\nmanifest: true\n");
  await writeFile(join(project, ".heddle", "envelopes", "edit.yaml"), "extends: edit\nlimits: { calls: 9 }\n");
  const get = async (path: string, token = world.tokens.viewer) => await ask(world.port, path, { token });
  const query = `?workspace=${encodeURIComponent(project)}`;
  const { data, edges } = EnvelopeList.parse((await get(`/api/envelopes${query}`)).json);
  expect(data).toEqual(JSON.parse(JSON.stringify(viewEnvelopes(readEnvelopes(envelopeFolders(world.home, project))))));
  expect(data.find(({ id }) => id === "docs")).toMatchObject({ source: "user", write: ["docs"], manifest: true });
  expect(edges.filter(({ from }) => from === "observe").map(({ to }) => to)).toEqual(["explore", "full"]);
  expect(edges).toHaveLength(data.reduce((sum, { exits }) => sum + exits.length, 0));
  const one = await get(`/api/envelopes/edit${query}`);
  expect(EnvelopeDetail.parse(one.json)).toMatchObject({ id: "edit", source: "project", limits: { calls: 9 } });
  expect((await get("/api/envelopes/edit")).json).toMatchObject({ source: "built-in" });
  expect((await get("/api/envelopes/edits")).json).toMatchObject({ error: { code: "envelope.unknown" } });
  expect((await get("/api/envelopes?workspace=%2F")).status).toBe(403);
  expect((await get("/api/envelopes?all=true")).status).toBe(400);
});
