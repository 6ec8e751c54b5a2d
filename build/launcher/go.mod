module launcher

go 1.24
