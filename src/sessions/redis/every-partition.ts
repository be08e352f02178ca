import type { Partition, Partitions } from './partitions.ts'

/**
 * Works on all partitions at a time. Those whose server is away are left out.
 * @throws what one of them threw when all did.
 */
export const everyPartition = async <T>(
  partitions: Pick<Partitions, 'all'>,
  work: (partition: Partition) => Promise<T>,
): Promise<readonly T[]> => {
  const results = await Promise.allSettled((await partitions.all()).map(work))
  const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (answers.length === 0 && failed !== undefined) throw failed.reason
  return answers
}
