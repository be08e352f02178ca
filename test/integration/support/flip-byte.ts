import { open } from 'node:fs/promises'

/** Changes one bit in the middle of a file. */
export const flipByte = async (path: string): Promise<void> => {
  const file = await open(path, 'r+')
  try {
    const middle = Math.floor((await file.stat()).size / 2)
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, middle)
    await file.write(
      buffer.map((byte) => byte ^ 1),
      0,
      1,
      middle,
    )
  } finally {
    await file.close()
  }
}
