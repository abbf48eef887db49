-- (total − reserved) × allocation_ratio, rounded down, as upstream Placement computes it. It is limited to ±(2^53 − 1), since upstream
-- allows ratios that overflow any integer. The same formula as capacityOf in core/ledger/model.ts.
create or replace function ledger_capacity(total int, reserved int, allocation_ratio double precision) returns bigint
  language sql immutable parallel safe
  return greatest(least(floor((total - reserved) * allocation_ratio), 9007199254740991), -9007199254740991)::bigint;
