import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { isReadOnlyRefusal, RedisSilentError, toRedisFault, withoutArguments } from '../../../src/redis/redis-fault.ts'
import { AnswerLateError } from '../../../src/redis/time-limit.ts'

const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' })

describe('a fault of Redis', () => {
  test.each([
    { name: 'a replica', message: "READONLY You can't write against a read only replica." },
    { name: 'a full Redis', message: "OOM command not allowed when used memory > 'maxmemory'." },
    {
      name: 'a full Redis, told by a script of Redis 6',
      message:
        "ERR Error running script (call to f_0123): @user_script:3: -OOM command not allowed when used memory > 'maxmemory'.",
    },
    { name: 'a Redis that loads', message: 'LOADING Redis is loading the dataset in memory' },
    { name: 'a missing permission', message: "NOPERM this user has no permissions to run the 'evalsha' command" },
    {
      name: 'a missing permission inside a script',
      message:
        "ERR The user executing the script can't run this command or subcommand script: 0123, on @user_script:12.",
    },
    { name: 'a missing login', message: 'NOAUTH Authentication required.' },
    { name: 'a wrong password', message: 'WRONGPASS invalid username-password pair or user is disabled.' },
    {
      name: 'a busy Redis',
      message: 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    },
    { name: 'a Redis that cannot save', message: 'MISCONF Redis is configured to save RDB snapshots' },
    { name: 'a replica without its master', message: 'MASTERDOWN Link with MASTER is down' },
    { name: 'too few replicas', message: 'NOREPLICAS Not enough good replicas to write.' },
  ])('that is $name is unavailability', ({ message }) => {
    const fault = toRedisFault(replyError(message), 'begin')

    expect(fault).toBeInstanceOf(RedisUnavailableError)
    expect(fault).not.toBeInstanceOf(RedisSilentError)
    expect(fault.message).toBe('Redis refused begin')
  })

  test.each([
    { name: 'a lost connection', error: new Error('Connection is closed.') },
    { name: 'no connection', error: new Error("Stream isn't writeable and enableOfflineQueue options is false") },
    { name: 'no route', error: Object.assign(new Error('connect EHOSTUNREACH'), { code: 'EHOSTUNREACH' }) },
    { name: 'something that is no error', error: 'gone' },
  ])('that is $name is unavailability', ({ error }) => {
    const fault = toRedisFault(error, 'begin')

    expect(fault).toBeInstanceOf(RedisUnavailableError)
    expect(fault).not.toBeInstanceOf(RedisSilentError)
  })

  test('that is a missing reply is a RedisSilentError', () => {
    expect(toRedisFault(new AnswerLateError('no answer within 250 ms'), 'begin')).toBeInstanceOf(RedisSilentError)
  })

  test.each([
    {
      name: 'a mistake in a script',
      message: 'ERR user_script:1: Script attempted to access nonexistent global variable',
    },
    { name: 'a key of another type', message: 'WRONGTYPE Operation against a key holding the wrong kind of value' },
    { name: 'a text that only sounds like a refusal', message: 'ERR value is LOADINGS or ROOMY' },
  ])('that is $name is a script error', ({ message }) => {
    expect(toRedisFault(replyError(message), 'begin')).toBeInstanceOf(RedisScriptError)
  })

  test('contains no arguments of the command', () => {
    const error = Object.assign(replyError("ERR unknown command 'evalshb', with args beginning with: 'marker' 'x'"), {
      command: { name: 'evalsha', args: ['marker'] },
      code: 'ERR',
    })

    expect(inspect(toRedisFault(error, 'begin'), { depth: 20 })).not.toContain('marker')
    expect(withoutArguments(error)).toMatchObject({
      name: 'ReplyError',
      message: "ERR unknown command 'evalshb'",
      code: 'ERR',
    })
  })

  test.each([
    { message: "READONLY You can't write against a read only replica.", readOnly: true },
    { message: 'ERR Error running script: @user_script:3: -READONLY no writes', readOnly: true },
    { message: 'LOADING Redis is loading the dataset in memory', readOnly: false },
  ])('asks for another connection: $message', ({ message, readOnly }) => {
    expect(isReadOnlyRefusal(replyError(message))).toBe(readOnly)
  })
})
