import { DatabaseSync } from "node:sqlite";

/** Lets a service write to its SQLite database while another one of its connections has not ended its reading; else it answers 500. */
export function allowReaders(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal");
  database.close();
}
