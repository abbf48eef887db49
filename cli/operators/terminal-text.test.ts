import { expect, test } from "vitest";
import { terminalText } from "./terminal-text.ts";

test.each([
  ["leaves plain text, line breaks and tabs", "login:\r\n\tü €\n", "login:\r\n\tü €\n"],
  [
    "leaves colours",
    "\u001b[1;32mOK\u001b[0m \u001b[38:5:1mx\u001b[m",
    "\u001b[1;32mOK\u001b[0m \u001b[38:5:1mx\u001b[m",
  ],
  ["changes no title and no clipboard", "\u001b]0;root\u0007\u001b]52;c;cm0gLXJm\u001b\\x", "]0;root]52;c;cm0gLXJm\\x"],
  ["asks the terminal nothing, and moves no cursor", "\u001b[6n\u001b[c\u001b[2J\u001bP$q\u0008\u007f", "[6n[c[2JP$q"],
  ["knows the controls of one byte", "\u009b2J\u009b31m\u009dtitle\u009c", "2J31mtitle"],
  [
    "is not deceived by an escape in the middle of a colour",
    "\u001b[1\u001b[6nm\u001b\u001b[31mred",
    "[1[6nm\u001b[31mred",
  ],
])("%s", (_, text, shown) => {
  expect(terminalText(text)).toBe(shown);
});
