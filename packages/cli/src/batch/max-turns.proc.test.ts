import { expect, test } from "vitest";
import { openMockWorld } from "../../test/mock-model.ts";

test("a limit of requests above the usual 200 is kept, and not the usual one", async () => {
  const most = 204;
  const plan = { tool: "update_plan", args: { plan: [{ step: "look", status: "pending" }] } };
  await using endless = await openMockWorld({ respond: () => ({ calls: [plan] }) });
  const { code, stdout } = await endless.exec(["--json", "--max-turns", String(most), "go"]);
  expect(code).toBe(6);
  expect(stdout.split("\n").find((line) => line.includes('"turn.failed"'))).toContain(
    `the limit of ${most} model requests is reached`,
  );
  expect(endless.server.requests).toHaveLength(most);
  // Without one, a model that goes in circles is still stopped.
  expect((await endless.exec(["--json", "go"])).stdout).toContain("the model made 200 requests without finishing");
});
