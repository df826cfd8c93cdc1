/** `view_image`: shows the model a picture from disk. */
import { imageTypeOf, HeddleError, type ItemOf } from "@heddle/protocol";
import { resolve } from "node:path";
import { jsonTool } from "../calls/call-item.ts";
import { absolutePath } from "../calls/call-path.ts";
import { readBytes } from "../files/text-file.ts";
import type { CallContext } from "../calls/tool.ts";
import { z } from "./schema.ts";

/** The limit of the providers, before base64. */
const MAX_IMAGE_BYTES = 3_750_000;

const Input = z.object({ path: z.string().check(z.describe("png, jpeg, gif or webp")) });
type Input = z.infer<typeof Input>;

export const viewImage = jsonTool<Input>({
  name: "view_image",
  description: "Shows you an image file.",
  input: Input,
  paths: (args) => [{ path: args.path, access: "read" }],
  describe: imageItem,
  async run(args, context) {
    const path = absolutePath(args.path, context.cwd);
    const bytes = await readBytes(path, context, MAX_IMAGE_BYTES);
    if (bytes === undefined) throw new HeddleError("tool.failed", `${path} does not exist`);
    const mediaType = imageTypeOf(bytes);
    if (mediaType === undefined) throw new HeddleError("tool.failed", `${path} is not a png, jpeg, gif or webp image`);
    return {
      isError: false,
      item: { ...imageItem(args, context), status: "completed" },
      output: [{ type: "image", mediaType, base64: bytes.toString("base64") }],
    };
  },
});

function imageItem(args: Input, context: CallContext): ItemOf<"imageView"> {
  const { callId, itemId } = context;
  return { type: "imageView", id: itemId, callId, path: resolve(context.cwd, args.path), status: "inProgress" };
}
