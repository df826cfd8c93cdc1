import { expect, test } from "vitest";
import { modelInfo } from "./catalog.ts";
import { fitEffort } from "./efforts.ts";
import { resolveProvider } from "../providers/providers.ts";
import { callIdRule, outputLimitField } from "./quirks.ts";

const at = (baseUrl: string) => resolveProvider([{ id: "x", wire: "openai-chat", baseUrl, key: "k" }], "x", {});

test("12.18: Azure takes the newer name of the output limit, whatever a deployment is called", () => {
  const azure = at("https://mine.openai.azure.com/openai/v1");
  expect(outputLimitField(azure, modelInfo(azure, "my-deployment"))).toBe("max_completion_tokens");
  const elsewhere = at("https://azure.com.example/v1");
  expect(outputLimitField(elsewhere, modelInfo(elsewhere, "my-deployment"))).toBe("max_tokens");
  expect(outputLimitField(elsewhere, modelInfo(elsewhere, "gpt-5.2-chat"))).toBe("max_completion_tokens");
});

test("12.16: Mistral has ids of its own form", () => {
  expect(callIdRule(at("https://api.mistral.ai/v1"))).toBe("nine-characters");
  expect(callIdRule(at("https://example.com/v1"))).toBe("any");
});

test("12.18: an effort is lowered to the nearest one that the model has, and a word nobody knows goes out as it is", () => {
  const info = { model: "m", efforts: ["low", "medium", "high"] };
  expect(fitEffort(info, "xhigh").effort).toBe("high");
  expect(fitEffort(info, "none").effort).toBe("low");
  expect(fitEffort(info, "medium")).toEqual({ effort: "medium" });
  expect(fitEffort(info, "ludicrous")).toEqual({ effort: "ludicrous" });
  expect(fitEffort({ model: "m" }, "xhigh")).toEqual({ effort: "xhigh" });
  expect(fitEffort({ model: "m", isReasoning: false }, "low")).toEqual({
    note: "m has no reasoning; the effort low is left out",
  });
});
