/** Starts the shipped tool. It is two files: Node caches only what is loaded after the cache is enabled. */
import './compile-cache.ts'
import './main.ts'
