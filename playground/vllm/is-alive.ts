import { hasErrorCode } from '../launcher/has-error-code.ts'

/** Whether a process with this id exists, of whichever user. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasErrorCode(error, 'EPERM')
  }
}
