/**
 * The boot sector of the nano guest: 16-bit code that needs no kernel, no disk driver and 1 MiB of memory. It prints `T` and a counter of
 * four hexadecimal digits on the first serial port about once a second. The counter lives in a register, so a live move that keeps the
 * guest's state continues it, and a reset begins at `T0001` again. When somebody presses the power button it prints `P` and powers off, and when
 * it receives a byte on the serial port it prints `Q` and powers off, as a machine whose owner shuts it down.
 *
 * The assembly, in AT&T's order of operands:
 *
 *     xorw %ax,%ax; movw %ax,%ds; movw %ax,%ss; movw $0x7000,%sp
 *     movw $0x602,%dx; movw $0x100,%ax; outw %ax,%dx            # PM1_EN: the power button sets its bit in PM1_STS
 *     xorw %si,%si; sti
 *     tick:  incw %si; movb $'T',%al; call put; movw %si,%bx; movw $4,%cx
 *     digit: rolw $4,%bx; movb %bl,%al; andb $15,%al; cmpb $10,%al; sbbb $0x69,%al; das; call put; loop digit
 *            movb $'\n',%al; call put; movw 0x46c,%bx           # 0x46c: the BIOS counts 18.2 timer ticks a second there
 *     wait:  hlt; movw $0x600,%dx; inw %dx,%ax; testb $1,%ah; jnz off
 *            movw $0x3fd,%dx; inb %dx,%al; testb $1,%al; jnz quit
 *            movw 0x46c,%ax; subw %bx,%ax; cmpw $18,%ax; jb wait; jmp tick
 *     off:   movb $'P',%al
 *     said:  call put; movb $'\n',%al; call put
 *            movw $0x604,%dx; movw $0x2000,%ax; outw %ax,%dx    # PM1_CNT: soft off
 *     dead:  hlt; jmp dead
 *     quit:  movb $'Q',%al; jmp said
 *     put:   pushw %ax; movw $0x3fd,%dx
 *     busy:  inb %dx,%al; testb $0x20,%al; jz busy; popw %ax; movw $0x3f8,%dx; outb %al,%dx; ret
 */
const BOOT_SECTOR = [
  "31c08ed88ed0bc0070ba0206b80001ef31f6fb46b054e8550089f3b90400",
  "c1c30488d8240f3c0a1c692fe84100e2efb00ae83a008b1e6c04f4ba0006",
  "edf6c4017514bafd03eca8017520a16c0429d883f81272e4ebbdb050e813",
  "00b00ae80e00ba0406b80020eff4ebfdb051ebea50bafd03eca82074fb58",
  "baf803eec3",
].join("");

/** The id under which `berth dev` and the tests know the nano guest's image; its last twelve digits spell "nano" in ASCII. */
export const NANO_IMAGE_ID = "00000000-0000-4000-8000-00006e616e6f";

const SECTOR_BYTES = 512;
const IMAGE_BYTES = 1_048_576;

/** The nano guest's disk, a raw image of 1 MiB. */
export function nanoImage(): Buffer {
  const image = Buffer.alloc(IMAGE_BYTES);
  image.write(BOOT_SECTOR, "hex");
  image.writeUInt16LE(0xaa55, SECTOR_BYTES - 2);
  return image;
}
