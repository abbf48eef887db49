-- When a conductor last renewed its lease, which operators see. Conductors of older versions leave it as it is.
alter table conductors add column renewed_at timestamptz;
