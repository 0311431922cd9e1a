module github.com/quotabench/quotabench/tools

go 1.26
