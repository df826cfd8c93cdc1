/**
 * Schemas for what models send, in the small form of the library, because a call waits while it is loaded. It has no
 * error messages of its own, and a model needs them.
 */
import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";

z.config(en());

export { z };
