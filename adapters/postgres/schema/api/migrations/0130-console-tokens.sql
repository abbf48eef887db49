-- Tokens of clients of consoles: their hash, and where the host of the guest waits for the client.
create table console_tokens (
  token_sha256 text primary key,
  server_uuid uuid not null,
  host text not null,
  port integer not null,
  session text not null,
  expires_at timestamptz not null
);
create index console_tokens_expires_at on console_tokens (expires_at);
