-- Returns the tokens of a server's spec (the message ServerSpec): the names of fields that few servers have, its launch index after the first, and its
-- fixed addresses. Null for a server without any. core/stores/cell/spec-tokens.ts does the same. An index uses this function, so its result for a
-- message must never change. The index asks for each new server, most of which have no token, so the bytes with which these fields begin are looked for
-- first, which is exact where there are none. Nearly every server has a description, its name, which counts as none.
-- Its loop is also in message_late_field, and a simpler one in message_field. Inserts pay for each step: with one loop for all fields, message_field, which each
-- new server needs three times, takes a quarter longer (1 microsecond). Nor can these functions simply call a common one: `reindex` runs without a search path
-- and would not find it.
create or replace function spec_tokens(message bytea) returns text[]
  language plpgsql immutable strict parallel safe
as $$
declare
  -- A stored message may be compressed, and would otherwise be decompressed for each byte.
  bytes constant bytea := message || ''::bytea;
  last constant int := length(bytes) - 1;
  described constant int := position('\xa201'::bytea in bytes);
  at int := 0;
  tag int;
  len int;
  part int;
  shift int;
  field int;
  -- The end of the field, and of the port or the image property in which the loop is.
  inner_end int := 0;
  outer_field int := 0;
  address text;
  name bytea := '';
  found text[];
begin
  if last > 39 and substring(bytes for 2) = '\x0a24' and get_byte(bytes, 38) = 18 and get_byte(bytes, 39) < 128
    and (described = 0 or substring(bytes from described + 2 for get_byte(bytes, 39) + 1) = substring(bytes from 40 for get_byte(bytes, 39) + 1)
      and position('\xa201'::bytea in substring(bytes from described + 2)) = 0)
    and position('\x9201'::bytea in bytes) = 0 and position('\x9a01'::bytea in bytes) = 0 and position('\xb201'::bytea in bytes) = 0
    and position('\xba01'::bytea in bytes) = 0 and position('\xd801'::bytea in bytes) = 0 and position('\xe001'::bytea in bytes) = 0
    and position('\xe801'::bytea in bytes) = 0
    and position('kernel_id'::bytea in bytes) = 0 and position('ramdisk_id'::bytea in bytes) = 0
  then
    return null;
  end if;
  while at <= last loop
    if at >= inner_end then
      outer_field := 0;
    end if;
    tag := get_byte(bytes, at);
    at := at + 1;
    -- A damaged message ends too early. Its row can be written all the same.
    exit when at > last;
    if tag > 127 then
      tag := (tag & 127) | (get_byte(bytes, at) << 7);
      at := at + 1;
      exit when at > last;
    end if;
    len := get_byte(bytes, at);
    at := at + 1;
    if len > 127 then
      len := len & 127;
      shift := 7;
      loop
        if at > last then
          return found;
        end if;
        part := get_byte(bytes, at);
        at := at + 1;
        if shift < 28 then
          len := len | ((part & 127) << shift);
        end if;
        exit when part < 128;
        shift := shift + 7;
      end loop;
    end if;
    field := tag >> 3;
    -- A number, which the spec has for few fields, and none before field 10.
    if tag & 7 = 0 then
      if outer_field = 0 and len > 0 then
        if field = 27 then
          found := found || 'config_drive'::text;
        elsif field = 28 then
          found := found || 'manual_disk'::text;
        elsif field = 29 then
          found := found || ('launch_index=' || len);
        end if;
      end if;
    elsif tag & 7 <> 2 then
      return found;
    elsif outer_field = 18 then
      -- A longer text is no address, and might be longer than an entry of an index can be.
      if field = 5 and len <= 64 then
        address := encode(substring(bytes from at + 1 for len), 'escape');
        found := found || ('ip=' || address);
        if position(':' in address) > 0 and not 'ip6' = any (found) then
          found := found || 'ip6'::text;
        end if;
      end if;
      at := at + len;
    elsif outer_field = 11 then
      if field = 1 and (len = 9 and substring(bytes from at + 1 for len) = 'kernel_id'
        or len = 10 and substring(bytes from at + 1 for len) = 'ramdisk_id')
      then
        found := found || encode(substring(bytes from at + 1 for len), 'escape');
      end if;
      at := at + len;
    elsif field = 18 or field = 11 then
      outer_field := field;
      inner_end := at + len;
    else
      if field = 2 then
        name := substring(bytes from at + 1 for len);
      elsif field > 18 then
        if field = 19 and len > 0 then
          found := found || 'hostname'::text;
        elsif field = 20 and substring(bytes from at + 1 for len) is distinct from name then
          found := found || 'description'::text;
        elsif field = 22 and len > 0 then
          found := found || 'access_ip_v4'::text;
        elsif field = 23 and len > 0 then
          found := found || 'access_ip_v6'::text;
        end if;
      end if;
      at := at + len;
    end if;
  end loop;
  return found;
end
$$;
