/** The shapes are the words of the protocol; the routes of this folder speak them. */
export * from "@heddle/protocol/http";
