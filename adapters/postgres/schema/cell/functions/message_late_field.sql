-- Returns the bytes of a field of a message as message_field does, for a field whose number is 16 to 2047. Its tag has two bytes.
-- Indexes use this function, so its result for a message must never change.
create or replace function message_late_field(message bytea, field int) returns bytea
  language plpgsql immutable strict parallel safe
as $$
declare
  -- A stored message may be compressed, and would otherwise be decompressed for each byte.
  bytes constant bytea := message || ''::bytea;
  last constant int := length(bytes) - 1;
  wanted constant int := field * 8 + 2;
  at int := 0;
  tag int;
  len int;
  part int;
  shift int;
  found bytea;
begin
  -- Most messages do not have the bytes of the tag, and so not the field.
  if position(set_byte(set_byte('\x0000', 0, wanted & 127 | 128), 1, wanted >> 7) in bytes) = 0 then
    return null;
  end if;
  while at < last loop
    -- Most fields before the wanted one have a tag of one byte and up to 127 bytes. They are passed over in two steps each, which halves the time.
    while at < last and get_byte(bytes, at) & 135 = 2 and get_byte(bytes, at + 1) < 128 loop
      at := at + 2 + get_byte(bytes, at + 1);
    end loop;
    exit when at >= last;
    tag := get_byte(bytes, at);
    at := at + 1;
    if tag > 127 then
      tag := (tag & 127) | (get_byte(bytes, at) << 7);
      at := at + 1;
    end if;
    exit when tag > wanted or at > last;
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
    if tag & 7 = 2 then
      if tag = wanted then
        found := substring(bytes from at + 1 for least(len, 1024));
      end if;
      at := at + len;
    elsif tag & 7 <> 0 then
      return found;
    end if;
  end loop;
  return found;
end
$$;
