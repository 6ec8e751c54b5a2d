import { expect, test } from 'vitest'
import { debianSources } from './debian-sources.ts'

const signed = 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
const trixie = [
  'Google main cloud-sdk https://packages.example.com/apt/',
  'Debian contrib trixie http://deb.example.com/debian/',
  'Debian main trixie http://deb.example.com/debian/',
  'Debian main trixie-updates http://deb.example.com/debian/',
  'Debian main trixie-security http://deb.example.com/debian-security/',
].join('\n')

test('the libraries of the image come from its own Debian, whichever one builds it', () => {
  expect(debianSources('bookworm', trixie, undefined)).toBe(
    [
      `${signed} http://deb.example.com/debian/ bookworm main\n`,
      `${signed} http://deb.example.com/debian/ bookworm-updates main\n`,
      `${signed} http://deb.example.com/debian-security/ bookworm-security main\n`,
    ].join(''),
  )
})

test('a mirror that is given takes the place of those of the machine', () => {
  const sources = debianSources('bookworm', 'Ubuntu main noble http://archive.example.com/ubuntu/', 'http://own/debian')
  expect(sources).toBe(`${signed} http://own/debian bookworm main\n${signed} http://own/debian bookworm-updates main\n`)
})

test('a machine without a Debian source has none', () => {
  expect(debianSources('bookworm', 'Ubuntu main noble http://archive.example.com/ubuntu/', undefined)).toBeUndefined()
  expect(debianSources('bookworm', '', undefined)).toBeUndefined()
})
