/** Pre-shared keys work with TLS 1.2 in Node. These suites have forward secrecy. */
export const CONSOLE_TLS = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES256-CBC-SHA384",
} as const;
