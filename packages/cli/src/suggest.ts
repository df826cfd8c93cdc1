export { didYouMean, nearest } from "@heddle/protocol";
