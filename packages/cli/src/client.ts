/** `heddle/client` in a checkout; the published package has it as one file of its own. */
export * from "@heddle/client";
