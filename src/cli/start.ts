/** What starts the shipped tool: two files, as Node keeps compiled only what is loaded after it was told to. */
import './compile-cache.ts'
import './main.ts'
