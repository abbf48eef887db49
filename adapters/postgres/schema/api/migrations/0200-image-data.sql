-- The bits of an image that the Image API stores: their size and hashes, or "awaited" until somebody uploads them. Null for an image whose
-- bits are stored elsewhere, which all images were so far.
alter table images add column data jsonb;
